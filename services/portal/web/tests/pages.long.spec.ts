import { SECOND } from './looks';
import { testPages } from './pages';

testPages(SECOND);
