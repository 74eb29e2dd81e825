export default function H() { return null; }
