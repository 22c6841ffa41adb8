import { parseArguments, type Arguments } from './arguments.js'
import { FlmServer } from './server.js'
import { pullModel } from './pull.js'
import { isInstalled, isKnown, resolveTag, tags } from './store.js'

/** The program `flm`: a stand-in for machines without an NPU. It loads as long as it has the order `hold-load`. */
const LOAD_MS = 50
const argv = process.argv.slice(2)
try {
  await run(parseArguments(argv))
} catch (error) {
  console.error((error as Error).message)
  process.exit(1)
}

async function run (args: Arguments): Promise<void> {
  const { command, tag } = args
  if (tag !== null && ['serve', 'pull'].includes(command) && !isKnown(tag)) {
    throw new Error(`[ERROR]  Model not found: ${tag}; Please check with \`flm list\` and try again.`)
  }
  switch (command) {
    case 'version': return console.log('FLM v1.0.6')
    case 'list': return list(args)
    case 'pull': {
      if (await pullModel(resolveTag(tag!))) return
      throw new Error(`[ERROR]  Failed to pull model: ${tag}`)
    }
    case 'serve': {
      if (args.asr) console.log('[FLM]  ASR mode enabled: reserving additional 1GB of memory')
      if (args.embed) console.log('[FLM]  Embedding mode enabled: reserving additional 300MB of memory')
      await new FlmServer(args, argv).start(LOAD_MS)
      return console.log(`[FLM]  WebServer started on port ${args.port} with 10 I/O threads`)
    }
    default: throw new Error(`Invalid command: ${command}`)
  }
}

function list ({ filter, json }: Arguments): void {
  const models = tags.map(name => ({ name, model: name, installed: isInstalled(name) }))
    .filter(({ installed }) => filter === 'all' || installed === (filter === 'installed'))
  console.log(json ? JSON.stringify({ models }, null, 4) : ['Models:', ...models.map(({ name }) => `  - ${name}`)].join('\n'))
}
