"""The 22 queries of TPC-H, and a few that statistics answer, by engines over Drumlin and over other storage.

DuckDB reads data sets of a store, Parquet, Lance and tables of its own; DataFusion and Polars read data sets and
Parquet. All run in this process with two threads, in turn, on the same rows and the same disk, with their defaults;
medians of the runs, each after one that is not counted, and geometric means of the ratios. A ratio below 1 means that
Drumlin took less. What an engine cannot read in SQL is left out, and said.

    python bench/tpch.py [--scale 1] [--runs 3] [--folder FOLDER] [--only Q1,Q6]
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import raw

import drumlin

THREADS = 2
#: Every table, and the columns by which the store sorts it.
TABLES = {
    "lineitem": ["l_orderkey"],
    "orders": ["o_orderkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey"],
    "supplier": ["s_suppkey"],
    "nation": ["n_nationkey"],
    "region": ["r_regionkey"],
}
REVENUE = "l_extendedprice * (1 - l_discount)"
QUERIES = {
    "Q1": """
        select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
               sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
               avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc,
               count(*) as count_order
        from lineitem where l_shipdate <= date '1998-09-02'
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "Q2": """
        select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part, supplier, partsupp, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
          and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
          and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
                               where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
                                 and n_regionkey = r_regionkey and r_name = 'EUROPE')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "Q3": f"""
        select l_orderkey, sum({REVENUE}) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
          and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    "Q4": """
        select o_orderpriority, count(*) as order_count from orders
        where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-10-01'
          and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    "Q5": f"""
        select n_name, sum({REVENUE}) as revenue
        from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
          and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
          and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
        group by n_name order by revenue desc""",
    "Q6": """
        select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
          and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    "Q7": f"""
        select supp_nation, cust_nation, l_year, sum(volume) as revenue
        from (select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
                     {REVENUE} as volume
              from supplier, lineitem, orders, customer, nation n1, nation n2
              where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
                and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
                and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY')
                     or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
                and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
        group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
    "Q8": f"""
        select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
        from (select extract(year from o_orderdate) as o_year, {REVENUE} as volume, n2.n_name as nation
              from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
              where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey
                and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey
                and r_name = 'AMERICA' and s_nationkey = n2.n_nationkey
                and o_orderdate between date '1995-01-01' and date '1996-12-31'
                and p_type = 'ECONOMY ANODIZED STEEL') as all_nations
        group by o_year order by o_year""",
    "Q9": f"""
        select nation, o_year, sum(amount) as sum_profit
        from (select n_name as nation, extract(year from o_orderdate) as o_year,
                     {REVENUE} - ps_supplycost * l_quantity as amount
              from part, supplier, lineitem, partsupp, orders, nation
              where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey
                and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
                and p_name like '%green%') as profit
        group by nation, o_year order by nation, o_year desc""",
    "Q10": f"""
        select c_custkey, c_name, sum({REVENUE}) as revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
          and o_orderdate < date '1994-01-01' and l_returnflag = 'R' and c_nationkey = n_nationkey
        group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        order by revenue desc limit 20""",
    "Q11": """
        select ps_partkey, sum(ps_supplycost * ps_availqty) as value
        from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
        group by ps_partkey
        having sum(ps_supplycost * ps_availqty) > (
            select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier, nation
            where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
        order by value desc""",
    "Q12": """
        select l_shipmode,
               sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end) as high_line_count,
               sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end) as low_line_count
        from orders, lineitem
        where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
          and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01'
        group by l_shipmode order by l_shipmode""",
    "Q13": """
        select c_count, count(*) as custdist
        from (select c_custkey, count(o_orderkey) as c_count
              from customer left outer join orders
                on c_custkey = o_custkey and o_comment not like '%special%requests%'
              group by c_custkey) as c_orders
        group by c_count order by custdist desc, c_count desc""",
    "Q14": f"""
        select 100.00 * sum(case when p_type like 'PROMO%' then {REVENUE} else 0 end) / sum({REVENUE}) as promo_revenue
        from lineitem, part
        where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'""",
    "Q15": f"""
        with revenue as (select l_suppkey as supplier_no, sum({REVENUE}) as total_revenue from lineitem
                         where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-04-01'
                         group by l_suppkey)
        select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
        where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
        order by s_suppkey""",
    "Q16": """
        select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
        from partsupp, part
        where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
          and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
          and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
        group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size""",
    "Q17": """
        select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part
        where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
          and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    "Q18": """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
        from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300)
          and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate limit 100""",
    "Q19": f"""
        select sum({REVENUE}) as revenue from lineitem, part
        where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON'
          and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                and l_quantity between 1 and 11 and p_size between 1 and 5)
               or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                   and l_quantity between 10 and 20 and p_size between 1 and 10)
               or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                   and l_quantity between 20 and 30 and p_size between 1 and 15))""",
    "Q20": """
        select s_name, s_address from supplier, nation
        where s_suppkey in (
            select ps_suppkey from partsupp
            where ps_partkey in (select p_partkey from part where p_name like 'forest%')
              and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem
                                 where l_partkey = ps_partkey and l_suppkey = ps_suppkey
                                   and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'))
          and s_nationkey = n_nationkey and n_name = 'CANADA'
        order by s_name""",
    "Q21": """
        select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation
        where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
          and l1.l_receiptdate > l1.l_commitdate
          and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
          and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey
                          and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
          and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
        group by s_name order by numwait desc, s_name limit 100""",
    "Q22": """
        select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
        from (select substring(c_phone, 1, 2) as cntrycode, c_acctbal from customer
              where substring(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
                and c_acctbal > (select avg(c_acctbal) from customer
                                 where c_acctbal > 0.00
                                   and substring(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17'))
                and not exists (select * from orders where o_custkey = c_custkey)) as custsale
        group by cntrycode order by cntrycode""",
}
#: What statistics know, and a look-up: not part of the means.
BESIDE = {
    "count(*)": "select count(*) as n from lineitem",
    "min and max of two dates": """
        select min(l_shipdate) as a, max(l_shipdate) as b, min(l_receiptdate) as c, max(l_receiptdate) as d
        from lineitem""",
    "one order": "select * from orders where o_orderkey = 3000001",
}


def generate(scale: float, folder: Path) -> None:
    tool = Path(sys.executable).parent / "tpchgen-cli"
    for name in TABLES:
        command = [str(tool), "parquet", "-s", f"{scale:g}", f"--tables={name}", "-o", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        table = pq.read_table(folder / f"{name}.parquet")
        plain = [pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in table.schema]
        pq.write_table(table.cast(pa.schema(plain)), folder / f"{name}.parquet", row_group_size=122_880)


def by_duckdb(connection: Any) -> Callable[[str], Any]:
    return lambda query: connection.sql(query).to_arrow_table()


def engines(folder: Path, store: drumlin.Store) -> dict[str, dict[str, Callable[[str], Any]]]:
    """By engine and storage, what answers a query."""
    parquet = {name: str(folder / f"{name}.parquet") for name in TABLES}
    connections = {storage: duckdb.connect() for storage in ("Drumlin", "Parquet", "Lance", "own tables")}
    for connection in connections.values():
        connection.execute(f"set threads = {THREADS}")
    for name, path in parquet.items():
        connections["Drumlin"].register(name, store.scan(name))
        connections["Parquet"].execute(f"create view {name} as from '{path}'")
        connections["own tables"].execute(f"create table {name} as from '{path}'")
    try:
        import lance
    except ImportError:
        del connections["Lance"]
    else:
        for name, path in parquet.items():
            lance.write_dataset(pq.read_table(path), str(folder / f"{name}.lance"))
            connections["Lance"].register(name, lance.dataset(str(folder / f"{name}.lance")))
    found = {"DuckDB": {storage: by_duckdb(connection) for storage, connection in connections.items()}}
    try:
        import datafusion
    except ImportError:
        pass
    else:
        config = datafusion.SessionConfig().with_target_partitions(THREADS)
        over, beside = datafusion.SessionContext(config), datafusion.SessionContext(config)
        for name, path in parquet.items():
            over.register_table(name, store.scan(name))
            beside.register_parquet(name, path)
        found["DataFusion"] = {
            "Drumlin": lambda query: over.sql(query).to_arrow_table(),
            "Parquet": lambda query: beside.sql(query).to_arrow_table(),
        }
    try:
        import polars
    except ImportError:
        pass
    else:
        frames = {
            "Drumlin": {name: store.scan(name).to_lazy() for name in TABLES},
            "Parquet": {name: polars.scan_parquet(path) for name, path in parquet.items()},
        }
        found["Polars"] = {
            storage: lambda query, own=own: polars.SQLContext(own).execute(query).collect().to_arrow()
            for storage, own in frames.items()
        }
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only")
    chosen = parser.parse_args()
    asked = {name: text for name, text in (QUERIES | BESIDE).items() if name in (chosen.only or name).split(",")}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        folder = Path(scratch)
        generate(chosen.scale, folder)
        with drumlin.open(folder / "store") as writer:
            for name, sort in TABLES.items():
                writer.write(name, pq.read_table(folder / f"{name}.parquet"), sort=sort)
        store = drumlin.open(folder / "store", mode="read", cpu_threads=THREADS, cache_bytes=1 << 30)
        for engine, storages in engines(folder, store).items():
            ratios: dict[str, list[float]] = {}
            for name, query in asked.items():
                times: dict[str, list[float]] = {storage: [] for storage in storages}
                rows: dict[str, int] = {}
                try:
                    for run in range(chosen.runs + 1):
                        for storage, answer in storages.items():
                            took, found = timed(lambda answer=answer, query=query: answer(query))
                            rows[storage] = found.num_rows
                            if run:
                                times[storage].append(took)
                except Exception as error:  # what an engine's SQL lacks
                    print(f"{engine} {name}: left out, {type(error).__name__}: {str(error).splitlines()[0][:90]}")
                    continue
                assert len(set(rows.values())) == 1, (engine, name, rows)
                raw.keep(f"{engine} {name}", times)
                own = statistics.median(times["Drumlin"])
                beside = {s: own / statistics.median(t) for s, t in times.items() if s != "Drumlin"}
                told = ", ".join(f"{storage} {ratio:.2f}" for storage, ratio in beside.items())
                print(f"{engine} {name}: {own * 1e3:.1f} ms; ratio to {told}")
                if name in QUERIES:
                    for storage, ratio in beside.items():
                        ratios.setdefault(storage, []).append(ratio)
            for storage, own_ratios in ratios.items():
                mean = math.exp(statistics.fmean(map(math.log, own_ratios)))
                print(f"{engine}, geometric mean of {len(own_ratios)} queries to {storage}: {mean:.2f}")
        if "one order" in asked:
            looked = lambda: store.read("orders", where="o_orderkey = 3000001").to_arrow()  # noqa: E731
            own_times = [timed(looked)[0] for _ in range(51)][1:]
            raw.keep("read one order", {"Drumlin": own_times})
            print(f"one order by `read`, without an engine: {statistics.median(own_times) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
