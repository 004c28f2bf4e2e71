RUN find "$(python3 -c 'import {package} as found; print(found.__path__[0])')" -type f \
    ! -name '*.py' ! -name '*.so' -delete
