# Completion of oneway for fish: copy this file to /etc/fish/completions/oneway.fish.
function __oneway_words
    oneway --completion-bash (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
# Files are completed only where the program has no words of its own.
complete -c oneway -f -n 'test (count (__oneway_words)) -gt 0' -a '(__oneway_words)'
