"""What a release is made of beside the wheel: the source distribution, a list of all that is linked into the wheel, and
the licences of that.

Called by `make dist`, which makes the wheel first. In `dist` are then also `drumlin-VERSION.tar.gz`,
`drumlin-VERSION.cdx.json` (CycloneDX 1.6) and `THIRD-PARTY-LICENCES.txt`. Fails if something linked has a licence that
is not among those known here.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
#: The crate that becomes the wheel's module.
WHEEL = "drumlin-python"
#: Licences that allow what is linked here under its own, and ask for notices only. The Mozilla licence asks for changes
#: of its own files to be published; none are changed.
KNOWN = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "MPL-2.0+",
    "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
_TEXTS = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|UNLICENSE)", re.IGNORECASE)


@dataclass(frozen=True)
class Crate:
    """A crate that is linked into the wheel."""

    name: str
    version: str
    licence: str
    folder: Path
    repository: str | None
    #: SHA-256 of what the registry gave; None for the project's own.
    checksum: str | None


def metadata() -> dict[str, Any]:
    """What cargo says of all crates, for the platform of this machine."""
    host = next(line[6:] for line in output("rustc", "-vV").splitlines() if line.startswith("host: "))
    asked = ("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host)
    found: dict[str, Any] = json.loads(output(*asked))
    return found


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked(told: dict[str, Any]) -> list[Crate]:
    """All crates that the wheel's module depends on, itself among them, by name; not what only builds or tests need."""
    packages = {package["id"]: package for package in told["packages"]}
    edges = {node["id"]: node["deps"] for node in told["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}
    found: dict[str, Crate] = {}
    open_ids = [next(id for id, package in packages.items() if package["name"] == WHEEL)]
    while open_ids:
        if (id := open_ids.pop()) in found:
            continue
        package = packages[id]
        name, version = package["name"], package["version"]
        licence = (package["license"] or "").replace(" / ", " OR ").replace("/", " OR ")
        folder = Path(package["manifest_path"]).parent
        found[id] = Crate(name, version, licence, folder, package["repository"], checksums.get((name, version)))
        open_ids += [edge["pkg"] for edge in edges[id] if any(kind["kind"] is None for kind in edge["dep_kinds"])]
    return sorted(found.values(), key=lambda crate: (crate.name, crate.version))


def unknown(crates: list[Crate]) -> list[str]:
    """Crates that cannot be used under licences known here."""

    def is_known(licence: str) -> bool:
        # Each part that must be kept has an alternative that is known.
        parts = licence.replace("(", "").replace(")", "").split(" AND ")
        choices = [[choice.split(" WITH ")[0].strip() for choice in part.split(" OR ")] for part in parts]
        return all(any(choice in KNOWN for choice in part) for part in choices)

    return [
        f"{crate.name} {crate.version}: {crate.licence or 'no licence'}"
        for crate in crates
        if not is_known(crate.licence)
    ]


def bill_of_materials(crates: list[Crate], version: str) -> dict[str, Any]:
    """All of them in the form of CycloneDX 1.6. The same crates give the same bytes."""

    def component(crate: Crate) -> dict[str, Any]:
        purl = f"pkg:cargo/{crate.name}@{crate.version}"
        made: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": crate.name, "version": crate.version}
        made |= {"purl": purl, "licenses": [{"expression": crate.licence}]}
        if crate.checksum is not None:
            made["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
        if crate.repository is not None:
            made["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
        return made

    own = {
        "type": "library",
        "bom-ref": "drumlin",
        "name": "drumlin",
        "version": version,
        "purl": f"pkg:pypi/drumlin@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own | {"licenses": [{"expression": "Apache-2.0"}]}},
        "components": [component(crate) for crate in crates if crate.name != WHEEL],
    }


def licences(crates: list[Crate]) -> str:
    """The texts that the crates carry, each once, with the names of those that carry it."""
    texts: dict[str, tuple[str, list[str]]] = {}
    bare: list[str] = []
    for crate in crates:
        if crate.folder.is_relative_to(ROOT):
            continue
        files = [file for file in sorted(crate.folder.iterdir()) if file.is_file() and _TEXTS.match(file.name)]
        for file in files:
            text = file.read_text(errors="replace").strip()
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, (text, []))[1].append(f"{crate.name} {crate.version}")
        if not files:
            bare.append(f"{crate.name} {crate.version}: {crate.licence}, {crate.repository}")
    parts = [f"{', '.join(dict.fromkeys(names))}\n\n{text}" for text, names in texts.values()]
    parts.append("These name their licence, but carry no text of it:\n\n" + "\n".join(bare))
    ruler = "\n\n" + "-" * 100 + "\n\n"
    return "Drumlin contains the following software." + ruler + ruler.join(parts) + "\n"


def main() -> int:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    crates = linked(metadata())
    if refused := unknown(crates):
        print("licences that are not known to be fit:", *refused, sep="\n  ", file=sys.stderr)
        return 1
    DIST.mkdir(exist_ok=True)
    bill = json.dumps(bill_of_materials(crates, version), indent=1) + "\n"
    (DIST / f"drumlin-{version}.cdx.json").write_text(bill)
    (DIST / "THIRD-PARTY-LICENCES.txt").write_text(licences(crates))
    maturin = str(Path(sys.executable).parent / "maturin")
    made = subprocess.run([maturin, "sdist", "--out", str(DIST)], cwd=ROOT / "python", check=False)
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
    return made.returncode


if __name__ == "__main__":
    sys.exit(main())
