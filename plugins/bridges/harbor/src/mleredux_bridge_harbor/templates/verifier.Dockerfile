FROM {image}
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /tests
{install}COPY . .
RUN if [ -e packages.tar.xz ]; then python3 -m tarfile -e packages.tar.xz . && rm packages.tar.xz; fi \
    && rm -rf wheels && chmod 700 /tests
WORKDIR {work}
