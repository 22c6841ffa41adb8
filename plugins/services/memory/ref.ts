export type { EngineAnswer, EngineRequest, EngineStatus, MemoryEngine } from './engine.js'
