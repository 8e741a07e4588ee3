# SPDX-License-Identifier: MIT
# fish: `rowfs complete` knows the words; where it knows none, files are offered.
function __rowfs_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l found (command $words[1] complete -- $words[2..-1] 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c rowfs -f -a '(__rowfs_complete)'
