"""What a kernel will take, in microseconds with its parts, before there is code.

One file a family of schedules turns (problem, schedule, target) into `Work`, which says what the machine has to do and
names no family; `price` turns that into a `Prediction` with the quantities of a `MachineModel` and nothing else.
Kernels with contractions are in `contractions`: their instruction families say what a step along k takes
(`FamilySchedules.step_times`).
"""

from mlirfuse.schedule.predict.kernels.contractions import predict_contraction
from mlirfuse.schedule.predict.predict import predict, work_of
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.work import Work, price

__all__ = ["Prediction", "Work", "predict", "predict_contraction", "price", "work_of"]
