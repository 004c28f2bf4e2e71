RUN if [ -d wheels ]; then set -- --no-index --find-links wheels; fi; \
    python3 -m pip install --no-cache-dir "$@" -r requirements.txt
