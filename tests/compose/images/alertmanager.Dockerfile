FROM oneway-stack/base
RUN mkdir -p /alertmanager && chown nobody /alertmanager
USER nobody
ENTRYPOINT ["/usr/bin/prometheus-alertmanager"]
