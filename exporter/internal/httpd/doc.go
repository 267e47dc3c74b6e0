// Package httpd is the agent's web server: metrics, a page for people that
// answers "is it working, and if not why" without a Prometheus, the same as
// JSON, health and reload.
//
//	GET  /                the page; ?all shows every path of many
//	GET  /metrics         text, OpenMetrics or protobuf, as the scraper asks
//	GET  /-/healthy       200 while the process serves
//	GET  /-/ready         200 while a configuration is in force, else 503
//	POST /-/reload        reads the configuration again, within a second or so; 500 and the reason if it is refused
//	GET  /api/v1/status   what the page says, for machines
//	GET  /runs            the runs of heavy tests that are kept, newest first, as JSON
//	GET  /runs/ID         one run's report, a download
//	GET  /sd              the peers, as Prometheus' http_sd wants them
//	GET  /debug/pprof/    only if asked for
//
// What anybody can reach must be there for everybody: connections have a share of
// each source and give way to new ones (door), and answers are made whole before
// they are sent, so that a slow reader holds nothing that another needs (answers). All
// of this takes no more than a part of the memory limit (room).
// What changes something is done only under this host's own names (named).
//
// TLS, client certificates, basic authentication and sockets from systemd are
// those of exporter-toolkit.
package httpd
