"""Ops of asynchronous hardware to NVVM: tensor-map copies, mbarriers, warpgroup multiplication, clusters."""
