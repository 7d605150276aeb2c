"""What a kernel without contractions will take, in microseconds with its parts, before there is code.

One file a family of schedules turns (problem, schedule, target) into `Work`, which says what the machine has to do and
names no family; `price` turns that into a `Prediction` with the quantities of a `MachineModel` and nothing else.
"""

from mlirfuse.schedule.predict.predict import best, predict, work_of
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.pricing import price
from mlirfuse.schedule.predict.work import Work

__all__ = ["Prediction", "Work", "best", "predict", "price", "work_of"]
