"""What a checkpoint would do, as the core gives it."""

from drumlin._drumlin import RepackPlan, TableVacuumPlan, VacuumPlan, VacuumWindow

__all__ = [
    "RepackPlan",
    "TableVacuumPlan",
    "VacuumPlan",
    "VacuumWindow",
]
