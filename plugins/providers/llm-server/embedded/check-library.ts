import { pathToFileURL } from 'node:url'
import type { LlamaModule } from './model-host.js'

/**
 * A program: loads the library whose entry it is given, and ends with 0 when this machine runs it. A file of its own,
 * because the library starts processes with the options of its own.
 */
const [, , entry] = process.argv
const { getLlama } = await import(pathToFileURL(entry!).href) as LlamaModule
await getLlama({ gpu: false, build: 'never', skipDownload: true, progressLogs: false })
process.exit(0)
