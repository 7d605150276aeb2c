"""Questions about kernels that passes ask before they rewrite: what a kernel reduces, which ops share one.
Nothing here changes IR or chooses a schedule.
"""
