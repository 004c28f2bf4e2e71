COPY requirements.txt wheel[s] wheels/
RUN if ls wheels/*.whl >/dev/null 2>&1; then set -- --no-index --find-links wheels; fi; \
    python3 -m pip install --no-cache-dir "$@" -r wheels/requirements.txt && rm -r wheels
