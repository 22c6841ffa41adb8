import { commandNames, type OwnCommand } from '../own-command.js'

/** A route that a message of the gateway names, and the command that does the same. The longest route comes first. */
const commands: ReadonlyArray<readonly [route: RegExp, command: string]> = [
  [/GET \/api\/models\/catalogue/g, 'svc model catalog'],
  [/POST \/api\/models\/inspect/g, 'svc model files <owner/name>'],
  [/POST \/api\/models\/\{id\}\/pull/g, 'svc model pull <ref>'],
  [/GET \/api\/models(?![\w/])/g, 'svc model list'],
  [/POST \/api\/slots\/([\w.-]+)\/unload/g, 'svc slot unload $1'],
  [/DELETE \/api\/slots\/([\w.-]+)(?!\/)/g, 'svc slot delete $1'],
  [/GET \/api\/slots(?![\w/])/g, 'svc slot list'],
  [/POST \/api\/upstreams\/([\w.-]+)\/test/g, 'svc upstream test $1'],
  [/GET \/api\/upstreams(?![\w/])/g, 'svc upstream list'],
  [/GET \/api\/plugins(?![\w/])/g, 'svc plugin list --all'],
  [/GET \/api\/profiles(?![\w/])/g, 'svc profile list'],
  [/GET \/api\/stacks(?![\w/])/g, 'svc stack list'],
  [/GET \/api\/capabilities(?![\w/])/g, 'svc capabilities list'],
  [/GET \/api\/agent\/approvals\?state=all/g, 'svc agent approvals list --state all'],
  [/GET \/api\/mcp\/servers(?![\w/])/g, 'svc mcp list'],
  [/POST \/api\/mcp\/([\w-]+)\/restart/g, 'svc mcp restart $1'],
  [/GET \/api\/requests(?![\w/])/g, 'svc ps'],
  [/POST \/api\/settings\/reload/g, 'svc config reload'],
  [/GET \/api\/status(?![\w/])/g, 'svc status']
]

/** Fields of the body that options stand for. */
const options: ReadonlyArray<readonly [field: RegExp, option: string]> = [
  [/\bhf_repo and hf_filename\b/g, '--repo and --file'],
  [/`hf_repo` as owner\/name, or `hf_url`/g, 'owner/name']
]

/** Around what others wrote, in characters that no text has. */
const [BEGIN, END] = ['\uE000', '\uE001']

/** Text of a plugin or another program, which `cliWords` leaves as it is. */
export function asWritten (text: string): string {
  return `${BEGIN}${unmarked(text)}${END}`
}

/** Without the marks of `asWritten`. */
export function unmarked (text: string): string {
  return text.replaceAll(/[\uE000\uE001]/g, '')
}

/**
 * A message that the gateway wrote for users of its API, for those of the command line: with commands as this user calls
 * them. Routes without a command stay. Pure.
 */
export function cliWords (message: string, command: OwnCommand = 'svc'): string {
  return message.split(BEGIN).map((part, i) => {
    const [written = '', own = ''] = i === 0 ? ['', part] : part.split(END)
    return written + inCommands(own).replace(ownCommands, command)
  }).join('')
}

/** `svc` where one of its commands follows. */
const ownCommands = new RegExp(`(?<![\\w/.-])(?<!npx )svc(?= (?:${commandNames.join('|')})\\b)`, 'g')

function inCommands (message: string): string {
  const named = commands.reduce((text, [route, command]) => text.replace(route, `\`${command}\``), message)
  return options.reduce((text, [field, option]) => text.replace(field, option), named)
}
