package commands

// An Elsewhere is a kind of command that this package does not run, as it needs another machine or changes this one.
type Elsewhere struct {
	// Begin is how such a command begins.
	Begin string
	// File runs it, which its text Evidence shows; without one nothing runs it, because of Reason.
	File, Evidence, Reason string
}

// elsewhere is the list of them; the first that fits counts.
var elsewhere = []Elsewhere{
	{Begin: "apt-get install -y ./oneway_", File: "tests/packages/guest.sh", Evidence: "page install.md"},
	{Begin: "systemctl enable --now oneway-agent", File: "tests/packages/guest.sh", Evidence: "page install.md"},
	{Begin: "journalctl -u oneway-agent", File: "tests/packages/guest.sh", Evidence: "page troubleshooting.md"},
	{Begin: "docker load", File: "tests/compose/run.sh", Evidence: "page exporter/doc/install.md"},
	{Begin: "docker run", File: "tests/compose/run.sh", Evidence: "page exporter/doc/install.md"},
	{Begin: "docker compose --project-directory deploy/compose up --detach", File: "tests/compose/run.sh", Evidence: "compose up --detach"},
	{Begin: "ansible-playbook --inventory deploy/ansible/inventory.yml deploy/ansible/site.yml", File: "tests/packages/ansible.sh", Evidence: "ansible-playbook --inventory"},
	{Begin: "kubectl", File: "deploy/kubernetes/deploy_test.go", Evidence: "func (c *cluster) page"},
	{Begin: "helm", File: "deploy/kubernetes/deploy_test.go", Evidence: "func (c *cluster) page"},
	{Begin: "opkg", Reason: "no OpenWrt is in a package registry; make openwrt-test does what opkg does"},
	{Begin: "uci", Reason: "no OpenWrt is in a package registry; make openwrt-test has a stand-in of uci"},
	{Begin: "/etc/init.d/firewall", Reason: "no OpenWrt is in a package registry"},
	{Begin: "/etc/init.d/oneway", File: "tests/openwrt/inside.sh", Evidence: "/etc/init.d/oneway"},
	{Begin: "telegraf --config", File: "telegraf-plugins/tests/rig_test.go", Evidence: `"--config"`},
	{Begin: "oneway-telegraf", File: "telegraf-plugins/tests/rig_test.go", Evidence: "oneway-telegraf"},
	{Begin: "build/oneway-telegraf", File: "telegraf-plugins/tests/rig_test.go", Evidence: "oneway-telegraf"},
	{Begin: "build/oneway-clock-telegraf", File: "telegraf-plugins/tests/rig_test.go", Evidence: "oneway-clock-telegraf"},
	{Begin: "deploy/influxdb/create.sh", File: "tests/influx/deploy_test.go", Evidence: "create.sh"},
	{Begin: "curl -sG http://INFLUXDB:8086/query", File: "tests/history/months_test.go", Evidence: "oneway_hour"},
	{Begin: "oneway trends --prometheus.url=http://PROMETHEUS", File: "tests/historyreport/history_test.go", Evidence: "TestHistoriesOfARealPrometheus"},
	{Begin: "influx config", Reason: "no build of InfluxDB 2 or 3 is among the tests"},
	{Begin: "influxdb3", Reason: "no build of InfluxDB 2 or 3 is among the tests"},
	{Begin: "go test -run '^$' -bench Footprint", File: "exporter/doc/sizing.md", Evidence: "Footprint"},
	{Begin: "build/oneway-lab", Reason: "it measures for minutes; tests/loadtest runs the same link and test"},
	{Begin: "vmalert", File: "deploy/victoriametrics/compare_test.go", Evidence: `"-dryRun"`},
	{Begin: "thanos", Reason: "Thanos is built by hand: the page has what was compared"},
	{Begin: "ptp4l", Reason: "it needs a network card with a clock"},
	{Begin: "ppstest", Reason: "it needs a pulse"},
	{Begin: "dmesg", File: "tests/packages/guest.sh", Evidence: "dmesg"},
	{Begin: "gpspipe", File: "tests/chronyconfig/gpsd_test.go", Evidence: "gpspipe"},
	{Begin: "ssh HOST systemctl", File: "tests/packages/guest.sh", Evidence: "ssh HOST"},
	{Begin: "systemctl", File: "tests/packages/guest.sh", Evidence: "systemctl|journalctl|dmesg"},
	{Begin: "journalctl", File: "tests/packages/guest.sh", Evidence: "systemctl|journalctl|dmesg"},
}
