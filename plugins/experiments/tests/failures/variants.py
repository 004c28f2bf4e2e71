# ruff: noqa: E501 - one line a command of an agent
"""More scenarios, written when the rules were done, to find what these miss: other words for the same failures."""

from __future__ import annotations

STYLES = ("search", "shell", "script")

VARIANTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, float], str]] = {
    "old-numpy": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('features = numpy.asarray(table).astype(numpy.float)', trace(\"AttributeError: module 'numpy' has no attribute 'float'\"), True); sys.exit(1)",
    ),
    "wheel": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('pip install --quiet --no-input autosklearn==0.15.0', 'error: subprocess-exited-with-error\\n  ERROR: Failed building wheel for pyrfr', True); sys.exit(1)",
    ),
    "killed": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('python train.py --folds 10 --model deberta-v3-large', 'epoch 1\\nKilled', True); sys.exit(1)",
    ),
    "bus": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('loader = DataLoader(images, num_workers=16); train(loader)', 'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).', True); sys.exit(1)",
    ),
    "sqlite-full": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('frame.to_sql(\"features\", connection, if_exists=\"append\")', trace('sqlite3.OperationalError: database or disk is full'), True); sys.exit(1)",
    ),
    "threads": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('model = RandomForestClassifier(n_jobs=900).fit(x, y)', trace(\"RuntimeError: can't start new thread\"), True); sys.exit(1)",
    ),
    "too-big": (
        STYLES,
        ("resources", "no-submission"),
        {"memory_mb": 128},
        "step('table = numpy.zeros((400, 1000000))  # all pairs of rows', 'allocating'); block = bytearray(600_000_000); print(len(block))",
    ),
    "auth": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = client.chat.completions.create(model, messages)', trace(\"openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}\"), True); sys.exit(1)",
    ),
    "overloaded": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = anthropic.Anthropic().messages.create(**request)', trace(\"anthropic.APIStatusError: Error code: 529 - {'type': 'error', 'error': {'type': 'overloaded_error'}}\"), True); sys.exit(1)",
    ),
    "context": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = litellm.completion(model=model, messages=history)', trace('litellm.exceptions.ContextWindowExceededError: This model has a maximum context length of 128000 tokens'), True); sys.exit(1)",
    ),
    "twice": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); rows = predictions(); submit([*rows[:-1], rows[0]])",
    ),
    "empty": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); (out / 'submission.csv').write_text(''); time.sleep(6)",
    ),
    "misnamed": (
        STYLES,
        ("no-submission",),
        {},
        "step(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); (out / 'predictions.csv').write_text('x'); time.sleep(1)",
    ),
    "late": (
        STYLES,
        (),
        {"time_limit": 16},
        "step(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); submit(predictions()); step(GOOD + '# tune', 'tuning'); time.sleep(60)",
    ),
    "commands": (
        ("search", "shell"),
        ("debug-loop", "no-submission"),
        {},
        "for i in range(4): step(f'kaggle competitions download -c toy -p /data/{i} --force', f'bash: line {i}: kaggle: command not found', True)\nsys.exit(1)",
    ),
    "stuck": (
        ("search", "shell"),
        ("resources", "debug-loop", "no-submission"),
        {},
        "for i in range(3): step(f'python train.py --epochs {20 - i} --model large --fold 0', f'Command timed out after {600 + i} seconds', True)\nsys.exit(1)",
    ),
    "optional": (
        STYLES,
        ("code-error", "no-submission"),
        {},
        "step('import xformers_optional; y = train[label_column]', \"UserWarning: No module named 'triton'; some kernels are slower\\n\" + trace(\"KeyError: 'label'\"), True); sys.exit(1)",
    ),
    "recovered": (
        STYLES,
        (),
        {},
        "step('model.fit(x, y, batch_size=4096, device=\"cuda\")', trace('torch.cuda.OutOfMemoryError: CUDA out of memory.'), True)\nstep(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "metrics-printed": (
        ("search", "shell"),
        (),
        {},
        "for i in range(4): step(f'train_and_check(model_{i}, folds=5, features=all_features)', f'Mean absolute error: 0.{i}\\nerror: 0.{i}')\nstep(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); submit(predictions())",
    ),
    "late-overfit": (
        ("search",),
        ("overfitting", "selection"),
        {},
        "step(GOOD + '# 1', 'accuracy 0.95', value=0.95); code(GOOD); submit(predictions())\nstep(GOOD + '# 2', 'accuracy 1.0', value=1.0); submit(predictions(0.45)); time.sleep(5)",
    ),
    "gpu-memory": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('xgb = XGBClassifier(device=\"cuda\", n_estimators=9000).fit(x, y)', trace('xgboost.core.XGBoostError: cudaErrorMemoryAllocation: out of memory'), True); sys.exit(1)",
    ),
    "mamba": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('mamba install --yes --quiet rapids=99 -c rapidsai', 'LibMambaUnsatisfiableError: Encountered problems while solving: nothing provides requested rapids 99', True); sys.exit(1)",
    ),
    "library": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('import torch; model = torch.load(\"weights.pt\").cuda()', trace('OSError: libcudart.so.11.0: cannot open shared object file: No such file or directory'), True); sys.exit(1)",
    ),
    "r-package": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('Rscript train.R --input /data/train.csv --output /tmp/model', \"Error in library(xgboost) : there is no package called 'xgboost'\\nExecution halted\", True); sys.exit(1)",
    ),
    "throttled": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = bedrock.converse(modelId=model, messages=messages)', trace('botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling the Converse operation: Too many requests'), True); sys.exit(1)",
    ),
    "quota": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = client.models.generate_content(model=model, contents=text)', trace('google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded for quota metric generate_content'), True); sys.exit(1)",
    ),
    "unknown-label": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); submit([[*r[:-1], 'enormous'] for r in predictions()])",
    ),
    "semicolons": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); (out / 'submission.csv').write_text('\\n'.join([';'.join([*ids, target]), *(';'.join(r) for r in predictions())])); time.sleep(6)",
    ),
    "cut-off": (
        STYLES,
        ("crash-at-end", "invalid-submission"),
        {"time_limit": 18},
        "step(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); submit(predictions()); submit(predictions()[:7]); time.sleep(60)",
    ),
    "oscillating": (
        ("search", "shell"),
        ("code-error", "no-submission"),
        {},
        "for i in range(6): step(f'frame = clean(raw_{i}); model.fit(frame, y_{i})', trace('KeyError: price' if i % 2 else 'IndexError: list index out of range', i), True)\nsys.exit(1)",
    ),
    "offline": (
        STYLES,
        ("network", "no-submission"),
        {},
        "step('model = AutoModel.from_pretrained(\"microsoft/deberta-v3-small\")', trace(\"OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\"), True); sys.exit(1)",
    ),
    "no-rules": (
        STYLES,
        ("network", "no-submission"),
        {},
        "step('kaggle competitions download -c titanic --path /tmp/more', '403 - Forbidden - You must accept the rules of this competition before you can download files.', True); sys.exit(1)",
    ),
    "reformatted": (
        ("search", "shell"),
        ("repetition",),
        {"time_limit": 30},
        "for i in range(3): step('model.fit(x, y)' + '\\n' * i + ' ' * i + 'print(model.score(x_valid, y_valid)) # look', f'accuracy {i}')\ncode(GOOD); submit(predictions(0.45)); time.sleep(8)",
    ),
    "restarts": (
        ("search", "shell"),
        (),
        {},
        "for i in range(4): step(f'model_{i}.fit(x, y); print(cross_val_score(model_{i}, x, y))', '0.9')\nstep(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); submit(predictions())",
    ),
}
"""As `SCENARIOS`."""
