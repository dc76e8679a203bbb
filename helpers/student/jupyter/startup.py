# PYTHONSTARTUP of the kernels that `python -m helpers lab` starts. Any interactive Python in JupyterLab's terminals
# runs it too.
if "get_ipython" in globals():
    from helpers.student.kernel import explain_until_started

    explain_until_started(get_ipython())  # noqa: F821
    del explain_until_started
