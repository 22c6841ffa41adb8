/** A language model in a process of its own that says the same to everybody. Arguments: host, port, and whose it is. */
import { createServer } from 'node:http'

const [host, port] = process.argv.slice(2)
const answer = {
  id: 'chat-1', object: 'chat.completion', created: 1, model: 'chat', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }]
}

createServer((request, response) => {
  request.resume().on('end', () => {
    const body = request.url === '/health' ? { status: 'ok' } : answer
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
}).listen(Number(port), host)
process.on('SIGTERM', () => process.exit(0))
