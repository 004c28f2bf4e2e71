FROM {image}
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /build
{install}{withhold}COPY . .
RUN mv /build/data {data} && rm -rf /build || {{ echo "Execute fetch.sh first." >&2; exit 1; }}
WORKDIR {work}
