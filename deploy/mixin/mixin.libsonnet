// The rules, alerts and dashboards as a monitoring mixin (monitoring.mixins.dev), from the generated files: for those who deploy with Jsonnet.
// It needs Jsonnet 0.18 or later (std.parseYaml). A file of your own may change it, such as
//
//   (import 'oneway/deploy/mixin/mixin.libsonnet') + {
//     _config+:: { thresholds: importstr 'oneway-thresholds.yml' },
//   }
{
  _config+:: {
    // The thresholds of the alerts: your own copy of oneway-thresholds.yml.
    thresholds: importstr '../prometheus/rules/oneway-thresholds.yml',
  },

  // All groups of the rule files, in their order.
  local groups = std.flatMap(
    function(file) std.parseYaml(file).groups,
    [
      $._config.thresholds,
      importstr '../prometheus/rules/oneway-alerts.yml',
      importstr '../prometheus/rules/oneway-baselines.yml',
      importstr '../prometheus/rules/oneway-load-test-alerts.yml',
      importstr '../prometheus/rules/oneway-days.yml',
      importstr '../prometheus/rules/oneway-load-test.yml',
      importstr '../prometheus/rules/oneway-recording.yml',
    ],
  ),
  local hasAlerts(group) = std.length([rule for rule in group.rules if std.objectHas(rule, 'alert')]) > 0,

  prometheusRules+:: { groups+: [group for group in groups if !hasAlerts(group)] },
  prometheusAlerts+:: { groups+: [group for group in groups if hasAlerts(group)] },

  grafanaDashboards+:: {
    'oneway-buffer_sweep.json': import '../../grafana-dashboards/dashboards/buffer_sweep.json',
    'oneway-capacity.json': import '../../grafana-dashboards/dashboards/capacity.json',
    'oneway-clock.json': import '../../grafana-dashboards/dashboards/clock.json',
    'oneway-compare.json': import '../../grafana-dashboards/dashboards/compare.json',
    'oneway-fairness.json': import '../../grafana-dashboards/dashboards/fairness.json',
    'oneway-load.json': import '../../grafana-dashboards/dashboards/load.json',
    'oneway-overview.json': import '../../grafana-dashboards/dashboards/overview.json',
    'oneway-paper.json': import '../../grafana-dashboards/dashboards/paper.json',
    'oneway-path.json': import '../../grafana-dashboards/dashboards/path.json',
    'oneway-raw_incident.json': import '../../grafana-dashboards/dashboards/raw_incident.json',
    'oneway-raw_packets.json': import '../../grafana-dashboards/dashboards/raw_packets.json',
    'oneway-raw_size_sweep.json': import '../../grafana-dashboards/dashboards/raw_size_sweep.json',
    'oneway-raw_tcp.json': import '../../grafana-dashboards/dashboards/raw_tcp.json',
    'oneway-raw_track.json': import '../../grafana-dashboards/dashboards/raw_track.json',
    'oneway-raw_trains.json': import '../../grafana-dashboards/dashboards/raw_trains.json',
    'oneway-tcp.json': import '../../grafana-dashboards/dashboards/tcp.json',
    'oneway-trends.json': import '../../grafana-dashboards/dashboards/trends.json',
    'oneway-voice.json': import '../../grafana-dashboards/dashboards/voice.json',
  },
}
