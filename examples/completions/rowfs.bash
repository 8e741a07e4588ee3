# SPDX-License-Identifier: MIT
# bash: `rowfs complete` knows the words; where it knows none, files are offered.
_rowfs()
{
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("$(printf %q "$line")")
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
		compopt -o nospace
	fi
}
complete -o default -F _rowfs rowfs
