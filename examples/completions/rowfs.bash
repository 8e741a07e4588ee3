# SPDX-License-Identifier: MIT
# bash: `rowfs complete` knows the words; where it knows none, files are offered.
_rowfs()
{
	local line i words=() before=
	# bash cuts a URL at its colons, and puts what is offered behind the last one.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if [[ ${#words[@]} -gt 0 && (${COMP_WORDS[i]} == : || ${COMP_WORDS[i - 1]} == :) ]]; then
			words[-1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
		fi
	done
	[[ ${words[-1]} == *:* && $COMP_WORDBREAKS == *:* ]] && before=${words[-1]%:*}:
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("$(printf %q "${line#"$before"}")")
	done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
		compopt -o nospace
	fi
}
complete -o default -F _rowfs rowfs
