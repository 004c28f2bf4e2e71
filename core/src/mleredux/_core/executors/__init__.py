"""Where runs are executed when not in this process: on this machine or through an engine such as Slurm."""
