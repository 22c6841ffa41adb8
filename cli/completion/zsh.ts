import { argumentBranches, caseLines, NAMES_COMMAND, optionBranches, quoted } from './cases.js'
import type { CompletionNode } from './tree.js'

/** The completion of zsh, with a line about each command and option. */
export function zshCompletion (nodes: readonly CompletionNode[]): string {
  const node = nodes.map(({ path, commands, options }) => [
    `    (${quoted(path.join(' '))})`,
    `      subs=(${commands.map(({ name, about }) => described(name, about)).join(' ')})`,
    `      opts=(${options.flatMap(({ spellings, about }) => spellings.map(spelling => described(spelling, about))).join(' ')}) ;;`
  ].join('\n'))
  return `#compdef svc
# completion of svc for zsh: svc completion zsh > "\${fpath[1]}/_svc"

_svc_node() {
  case "$1" in
${node.join('\n')}
  esac
}

_svc_option() {
  case "$1" in
${caseLines(optionBranches(nodes))}
    (*) kind='' ;;
  esac
}

_svc_argument() {
  case "$1" in
${caseLines(argumentBranches(nodes))}
    (*) kind='' ;;
  esac
}

_svc() {
  local current=\${words[CURRENT]} where='' kind='' word at count=0
  local -a subs opts found
  _svc_node ''
  for ((at = 2; at < CURRENT; at++)); do
    word=\${words[at]}
    kind=''
    case "$word" in
      (-*=*) ;;
      (-*) _svc_option "\${where:+$where }$word"
        [[ -z $kind ]] || at=$((at + 1)) ;;
      (*) if [[ -n \${subs[(r)$word:*]} ]]; then
          where="\${where:+$where }$word"
          _svc_node "$where"
        else
          count=$((count + 1))
        fi ;;
    esac
  done
  if ((at == CURRENT)); then
    case "$current" in
      (--*=*) _svc_option "\${where:+$where }\${current%%=*}"
        compset -P '*=' ;;
      (-*) _describe -o option opts
        return ;;
      (*) if (($#subs)); then
          _describe command subs
          return
        fi
        _svc_argument "\${where:+$where }$count" ;;
    esac
  fi
  case "$kind" in
    (words*) found=(\${=kind#words}) ;;
    (names*) found=(\${(f)"$(${NAMES_COMMAND} \${kind#names } 2>/dev/null)"}) ;;
    (files) _files ;;
    (folders) _files -/ ;;
  esac
  (($#found)) && compadd -- $found
}

if [[ "\${funcstack[1]}" == _svc ]]; then
  _svc "$@"
else
  compdef _svc svc
fi
`
}

/** A colon parts the word from what is said about it. */
function described (word: string, about: string): string {
  return quoted(`${word}:${about}`)
}
