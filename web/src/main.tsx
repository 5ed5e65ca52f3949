import './style/tokens.css'
import './style/base.css'
import './style/shell.css'
import './style/parts.css'
import './style/chart.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { connect } from './live/connection.ts'
// Listens from the beginning, so that a training's page has a past to show.
import './live/step-log.ts'
import { registerWorker } from './push.ts'

const root = document.getElementById('app')
if (root) render(<App />, root)
connect()
registerWorker()
