#!/bin/bash
set -x
eval "$(conda shell.bash hook)"
conda activate agent

echo "arguments: $*"
echo "greeting: $GREETING; time: $TIME_LIMIT_SECS; token: ${AUTHORIZATION:-none}; folder: $(pwd)"
sed -i 's|/home/||g' /home/instructions.txt
echo "Be steady." >> /home/instructions.txt
envsubst < ${AGENT_DIR}/notes.txt >> /home/instructions.txt
cat /home/instructions.txt /home/data/description.md > full_instructions.txt
cp full_instructions.txt ${LOGS_DIR}/

python ${AGENT_DIR}/main.py "$@"
cp ${AGENT_DIR}/main.py ${CODE_DIR}/solution.py
bash /home/validate_submission.sh ${SUBMISSION_DIR}/submission.csv
/opt/conda/bin/conda run -n agent python -c "import sys; print('run in', sys.prefix)"
curl -s -F "file=@${SUBMISSION_DIR}/submission.csv" http://localhost:5000/validate
