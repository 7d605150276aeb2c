"""Passes on the traced function that schedule the kernels of both of its forms on trial, and keep the faster one."""
