import { argumentBranches, NAMES_COMMAND, optionBranches, quoted, type Branch } from './cases.js'
import type { CompletionNode } from './tree.js'

/** The completion of fish: one function that says all candidates for the place of the cursor, each with a line about it. */
export function fishCompletion (nodes: readonly CompletionNode[]): string {
  const commands = nodes.filter(node => node.commands.length > 0).map(node => branch(node.path.join(' '),
    node.commands.map(({ name, about }) => said(name, about))))
  const options = nodes.map(node => branch(node.path.join(' '),
    node.options.flatMap(({ spellings, about }) => spellings.map(spelling => said(spelling, about)))))
  const paths = nodes.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' '))).join(' ')
  return `# completion of svc for fish: svc completion fish > ~/.config/fish/completions/svc.fish

function __svc_commands
    switch "$argv[1]"
${commands.join('\n')}
    end
end

function __svc_options
    switch "$argv[1]"
${options.join('\n')}
    end
end

function __svc_option_kind
    switch "$argv[1]"
${cases(optionBranches(nodes))}
    end
end

function __svc_argument_kind
    switch "$argv[1]"
${cases(argumentBranches(nodes))}
    end
end

function __svc_values --argument-names kind current
    switch "$kind"
        case 'words *'
            string split ' ' -- (string replace 'words ' '' -- $kind)
        case 'names *'
            ${NAMES_COMMAND} (string replace 'names ' '' -- $kind) 2>/dev/null
        case files
            __fish_complete_path $current
        case folders
            __fish_complete_directories $current ''
    end
end

function __svc_complete
    set -l known ${paths}
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l at
    set -l count 0
    set -l kind
    for word in $words[2..-1]
        if test -n "$kind"
            set kind
            continue
        end
        switch $word
            case '-*=*'
            case '-*'
                set kind (__svc_option_kind (string join ' ' -- $at $word))
            case '*'
                if contains -- (string join ' ' -- $at $word) $known
                    set at $at $word
                else
                    set count (math $count + 1)
                end
        end
    end
    set -l where (string join ' ' -- $at)
    if test -n "$kind"
        __svc_values $kind "$current"
        return
    end
    switch "$current"
        case '--*=*'
            set -l name (string split -m 1 = -- $current)
            for value in (__svc_values (__svc_option_kind (string join ' ' -- $at $name[1])) "$name[2]")
                echo "$name[1]=$value"
            end
        case '-*'
            __svc_options "$where"
        case '*'
            set -l commands (__svc_commands "$where")
            if test -n "$commands"
                printf '%s\\n' $commands
            else
                __svc_values (__svc_argument_kind (string join ' ' -- $at $count)) "$current"
            end
    end
end

complete -c svc -f -a '(__svc_complete)'
`
}

function branch (path: string, lines: readonly string[]): string {
  return `        case ${quoted(path)}\n            printf '%s\\t%s\\n' ${lines.join(' ')}`
}

function said (word: string, about: string): string {
  return `${quoted(word)} ${quoted(about)}`
}

function cases (branches: readonly Branch[]): string {
  return branches.map(({ patterns, kind }) => `        case ${patterns.map(quoted).join(' ')}\n            echo ${quoted(kind)}`).join('\n')
}
