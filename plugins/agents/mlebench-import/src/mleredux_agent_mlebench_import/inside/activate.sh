# For `source activate NAME`.
. /opt/conda/etc/profile.d/conda.sh
conda activate "$@"
