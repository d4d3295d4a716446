"""What a checkpoint would do, and what reading costs, as the core gives it."""

from drumlin._drumlin import DatasetPlan, RepackPlan, TableVacuumPlan, VacuumPlan, VacuumWindow

__all__ = [
    "DatasetPlan",
    "RepackPlan",
    "TableVacuumPlan",
    "VacuumPlan",
    "VacuumWindow",
]
