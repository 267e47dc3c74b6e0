module oneway.example/grafana-dashboards

go 1.26.0

require oneway.example v0.0.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.18

require go.yaml.in/yaml/v3 v3.0.6

replace oneway.example => ../
