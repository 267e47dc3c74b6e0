FROM oneway-stack/base
COPY telegraf /usr/bin/
CMD ["telegraf", "--config", "/etc/telegraf/telegraf.conf"]
