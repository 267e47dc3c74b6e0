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
	github.com/gogo/protobuf v1.3.1 // indirect
	github.com/influxdata/line-protocol/v2 v2.2.1 // indirect
)

replace oneway.example => ../
