"""The CUDA libraries and the driver: functions, loaded modules, tensor maps."""
