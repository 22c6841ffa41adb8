import { defineErrors } from 'svc-gateway/plugin'

export const memoryApiError = defineErrors('memory', {
  invalid_bank: { status: 400, when: 'the id of a bank does not start with a letter or digit, or contains other characters than letters, digits, _ and -' },
  invalid_path: { status: 400, when: 'a name in the path contains other characters than letters, digits and `. _ : -`, or a path step' },
  confirm_required: { status: 400, when: 'a request to delete a bank lacks its id as confirmation' },
  operator_only: { status: 403, when: 'an agent makes a call about all banks' },
  invalid_query: { status: 422, when: 'the query of a subgraph is invalid' },
  node_not_found: { status: 404, when: 'the central node of a subgraph does not exist' }
})

export const graphError = defineErrors('config', {
  memory_graph_invalid: { status: 400, when: 'a setting of the graph is unknown or has an invalid value' },
  memory_graph_slot_invalid: { status: 422, when: 'the slot for graph extraction is not an enabled llm slot' }
})
