import type { EngineArgs } from './args.js'
import type { EngineLog } from './log.js'
import { loadModel, type HostLibrary } from './model-host.js'
import { RankEngine } from './rank-engine.js'
import { TextEngine } from './text-engine.js'
import { VectorEngine } from './vector-engine.js'

export type Engine = TextEngine | VectorEngine | RankEngine

/** Loads the model for what the command line asks. Rejects when the file cannot serve that. */
export async function loadEngine (args: EngineArgs, library: HostLibrary, log: EngineLog): Promise<Engine> {
  const host = await loadModel(args, library, log)
  switch (args.mode) {
    case 'text': return TextEngine.create(host, args)
    case 'embedding': return VectorEngine.create(host, args)
    case 'reranking': return RankEngine.create(host, args)
  }
}
