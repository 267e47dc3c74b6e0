# Completion of oneway for bash: source this file, or copy it to /usr/share/bash-completion/completions/oneway.
_oneway() {
	local current="${COMP_WORDS[COMP_CWORD]}" words=() word
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		[[ $word == "=" ]] || words+=("$word") # bash separates --flag=value at the =
	done
	[[ $current == "=" ]] && current=
	mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --completion-bash "${words[@]}" "$current" 2>/dev/null)" -- "$current")
}
complete -o default -F _oneway oneway
