/** The command line of FastFlowLM, as its sources of 1.0 read it (src/include/utils/vm_args.hpp). */
export interface Arguments {
  readonly command: string
  readonly tag: string | null
  readonly host: string
  readonly port: number
  readonly asr: boolean
  readonly embed: boolean
  /** -1: what the model says. */
  readonly contextLength: number
  readonly sockets: number
  readonly queue: number
  readonly filter: string
  readonly json: boolean
}

const valued: Readonly<Record<string, string>> = {
  'pmode': 'performance', 'asr': '0', 'embed': '0', 'host': '127.0.0.1', 'port': '-1', 'filter': 'all', 'ctx-len': '-1', 'prefill-chunk-len': '-1',
  'img-pre-resize': '2', 'socket': '10', 'q-len': '10', 'cors': '1', 'preemption': '0', 'prompt': ''
}
const switches = ['force', 'quiet', 'json', 'hf']
const short: Readonly<Record<string, string>> = {
  a: 'asr', e: 'embed', p: 'port', c: 'ctx-len', r: 'img-pre-resize', s: 'socket', q: 'q-len', i: 'prompt', j: 'json'
}
const serveOnly = ['socket', 'q-len', 'port', 'cors']

/** Throws with the message that is printed. */
export function parseArguments (words: readonly string[]): Arguments {
  const values = new Map<string, string>()
  const positional: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (!/^-\D/.test(word)) {
      positional.push(word)
      continue
    }
    const [name = '', inline] = word.replace(/^--?/, '').split('=', 2)
    const flag = word.startsWith('--') ? name : short[name]
    if (flag !== undefined && switches.includes(flag)) values.set(flag, '1')
    else if (flag !== undefined && Object.hasOwn(valued, flag)) values.set(flag, inline ?? words[++i] ?? '')
    else throw new Error(`Error parsing arguments: unrecognised option '${word}'`)
  }
  const [command, tag = null, ...rest] = positional
  if (command === undefined) throw new Error('Error: Command is required')
  if (rest.length > 0) throw new Error('Error parsing arguments: too many positional options have been specified on the command line')
  if (command !== 'serve' && serveOnly.some(flag => values.has(flag))) throw new Error(`Error: The option is only supported with the serve command!`)
  const text = (flag: string): string => values.get(flag) ?? valued[flag] ?? '0'
  const number = (flag: string): number => {
    if (!/^-?\d+$/.test(text(flag))) throw new Error(`Error parsing arguments: the argument ('${text(flag)}') for option '--${flag}' is invalid`)
    return Number(text(flag))
  }
  const truth = (flag: string): boolean => {
    if (!/^([01]|yes|no|on|off|true|false)$/.test(text(flag))) throw new Error(`Error parsing arguments: the argument ('${text(flag)}') for option '--${flag}' is invalid`)
    return /^(1|yes|on|true)$/.test(text(flag))
  }
  if (!/^(default|powersaver|balanced|performance|turbo)$/.test(text('pmode'))) throw new Error(`Error: Invalid power mode '${text('pmode')}'`)
  truth('cors')
  return {
    command,
    tag,
    host: text('host'),
    port: number('port'),
    asr: truth('asr'),
    embed: truth('embed'),
    contextLength: number('ctx-len'),
    sockets: number('socket'),
    queue: number('q-len'),
    filter: text('filter'),
    json: values.has('json')
  }
}
