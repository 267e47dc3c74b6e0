// InfluxDB 2: a task that copies the rows of hours (oneway_hour...), which agents write, to the bucket oneway_long as they are: nothing is
// aggregated again. The row of the present hour replaces itself. create.sh installs it.
option task = {name: "oneway_hours", every: 15m, offset: 1m}

from(bucket: "oneway")
    |> range(start: -6h)
    |> filter(fn: (r) => r._measurement =~ /^oneway_hour(_round_trip|_voice)?$/)
    |> to(bucket: "oneway_long")
