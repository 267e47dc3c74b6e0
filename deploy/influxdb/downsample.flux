// InfluxDB 2: a task that writes values of 5 minutes to the bucket oneway_long. The fields get the prefixes mean_, max_ and last_ (last_
// for counters) and, as in InfluxQL, the time at which the 5 minutes begin. Packets, traces, classic buckets and text are left out.
// create.sh installs it.
option task = {name: "oneway_5m", every: 5m, offset: 1m}

data = from(bucket: "oneway")
    |> range(start: -1h)
    |> filter(fn: (r) => r._measurement =~ /^oneway_(run_)?(probe|probe_reason|path_event|path|packets|packets_reason|packets_round_trip|delay|delay_reason|delay_round_trip|delay_component|delay_timestamp|voice|voice_playout|test|test_direction|test_result|test_outcome|test_corruption|test_link|test_path|test_path_link|quota|quota_kind|load|load_elapsed|load_state|load_sweep|working|working_round_trip|size_sweep|capacity|capacity_size|capacity_trains|tcp|tcp_round_trip|tcp_state|tcp_result|tcp_reason|tcp_model|tcp_two_way|tcp_short|tcp_congestion_control|tcp_sweep|tcp_sweep_model|message|clock|clock_reason|clock_state|clock_reference|clock_remote|clock_calibration|gnss|gnss_reason|pps|pps_reason|load_server|load_server_token|load_server_reason|load_server_result|output|output_result|on_demand|on_demand_result|agent|agent_event|agent_host|agent_listener|agent_calendar|agent_socket|agent_socket_reason|agent_reflector|timestamp|timestamp_origin|incident)$/)
    |> filter(fn: (r) => r._field !~ /^(run|family|kind|leap_status|payload_bytes|peer|reference_id|reflector|schedule|stratum)$/)

data
    |> aggregateWindow(every: 5m, fn: mean, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({r with _field: "mean_" + r._field}))
    |> to(bucket: "oneway_long")

data
    |> aggregateWindow(every: 5m, fn: max, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({r with _field: "max_" + r._field}))
    |> to(bucket: "oneway_long")

data
    |> aggregateWindow(every: 5m, fn: last, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({r with _field: "last_" + r._field}))
    |> to(bucket: "oneway_long")
