# In the place of OpenWrt's procd.sh: what procd would get is written to /tmp/procd, a parameter in each line.
procd_open_service() { : >/tmp/procd; }
procd_close_service() { service_triggers; }
procd_open_instance() { echo instance >>/tmp/procd; }
procd_close_instance() { :; }
procd_set_param() { echo "$*" >>/tmp/procd; }
procd_append_param() { sed -i "s|^$1 .*|& $2|" /tmp/procd; }
procd_add_reload_trigger() { echo "trigger $*" >>/tmp/procd; }
