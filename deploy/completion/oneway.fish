# Completion of oneway for fish: copy this file to /etc/fish/completions/oneway.fish.
complete -c oneway -a '(oneway --completion-bash (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
