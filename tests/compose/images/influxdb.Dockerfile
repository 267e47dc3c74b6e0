FROM oneway-stack/base
COPY influxd influx /usr/bin/
RUN printf '[meta]\ndir = "/var/lib/influxdb/meta"\n[data]\ndir = "/var/lib/influxdb/data"\nwal-dir = "/var/lib/influxdb/wal"\n' >/etc/influxdb.conf
CMD ["influxd", "-config", "/etc/influxdb.conf"]
