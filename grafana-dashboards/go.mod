module oneway.example/grafana-dashboards

go 1.26.0

require oneway.example v0.0.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.18

require (
	github.com/influxdata/influxql v1.1.1-0.20200828144457-65d3ef77d385
	go.yaml.in/yaml/v4 v4.0.0
)

require (
	github.com/alecthomas/units v0.0.0-20240927000941-0f3dac36c52b // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/facebook/time v0.0.0-20260822211804-f81aedc1c1e3 // indirect
	github.com/gogo/protobuf v1.3.1 // indirect
	github.com/influxdata/line-protocol/v2 v2.2.1 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/vishvananda/netlink v1.3.1 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace oneway.example => ../
