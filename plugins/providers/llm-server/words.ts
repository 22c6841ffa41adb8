export const words = { name: 'llm-server', isNamed: true }

/** The program of the makers, as it is looked for on PATH. */
export const PROGRAM = 'llama-server'

/** What else runs models where there is neither a container engine nor the embedded engine. */
export const PROGRAM_HINT = `install llama.cpp's ${PROGRAM}`

/** The engine that \`svc engine install\` brings. */
export const embeddedWords = {
  help: 'The embedded engine is llama.cpp as a library. It serves slots on machines without ' +
    `a container engine and without ${PROGRAM}. It is about 80 MB, more with a GPU.`,
  origin: 'It is node-llama-cpp with llama.cpp in it, licence MIT: https://node-llama-cpp.withcat.ai, https://github.com/ggml-org/llama.cpp'
}
