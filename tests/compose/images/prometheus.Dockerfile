FROM oneway-stack/base
COPY prometheus /bin/
RUN mkdir -p /prometheus && chown nobody /prometheus
USER nobody
ENTRYPOINT ["/bin/prometheus"]
