import { argumentBranches, caseLines, NAMES_COMMAND, optionBranches, quoted } from './cases.js'
import type { CompletionNode } from './tree.js'

/** The completion of bash, from 3.2 on. Names are compared by the shell itself and never expanded. */
export function bashCompletion (nodes: readonly CompletionNode[]): string {
  const node = nodes.map(({ path, commands, options }) =>
    `    (${quoted(path.join(' '))}) subs=${quoted(commands.map(({ name }) => name).join(' '))}
      opts=${quoted(options.flatMap(({ spellings }) => spellings).join(' '))} ;;`)
  return `# completion of svc for bash: source <(svc completion bash)

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

_svc_candidates() {
  case "$1" in
    (words*) printf '%s\\n' \${1#words} ;;
    (names*) ${NAMES_COMMAND} "\${1#names }" 2>/dev/null ;;
    (files) compgen -f -- "$2" ;;
    (folders) compgen -d -- "$2" ;;
  esac
}

_svc() {
  # bash takes words apart at colons and equals signs; svc does not
  local line=\${COMP_LINE:0:COMP_POINT} current='' value='' at=1 where='' count=0 last word kind='' before subs='' opts=''
  local -a parts
  read -ra parts <<< "$line"
  last=\${#parts[@]}
  case "$line" in
    (*[[:space:]]) ;;
    (*) last=$((last - 1)); current=\${parts[last]} ;;
  esac
  value=$current
  _svc_node ''
  for ((at = 1; at < last; at++)); do
    word=\${parts[at]}
    kind=''
    case "$word" in
      (-*=*) ;;
      (-*) _svc_option "\${where:+$where }$word"
        [[ -z $kind ]] || at=$((at + 1)) ;;
      (*) if [[ " $subs " == *" $word "* ]]; then
          where="\${where:+$where }$word"
          _svc_node "$where"
        else
          count=$((count + 1))
        fi ;;
    esac
  done
  if ((at == last)); then
    case "$current" in
      (--*=*) value=\${current#*=}
        _svc_option "\${where:+$where }\${current%%=*}" ;;
      (-*) kind="words $opts" ;;
      (*) if [[ -n $subs ]]; then kind="words $subs"; else _svc_argument "\${where:+$where }$count"; fi ;;
    esac
  fi
  before=\${current%"\${current##*[:=]}"}
  case "$kind" in (files|folders) compopt -o filenames 2>/dev/null ;; esac
  COMPREPLY=()
  while IFS= read -r word; do
    [[ -n $word && $word == "$value"* ]] || continue
    word="\${current%"$value"}$word"
    COMPREPLY+=("\${word#"$before"}")
  done < <(_svc_candidates "$kind" "$value")
}

complete -F _svc svc
`
}
