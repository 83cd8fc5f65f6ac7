//! What the console says.

use crate::domain::{AttemptState, ExceptionKind, Role, Status};
use crate::http::texts;
use crate::store::EventState;

texts! {
    console: "Consola", "Console", "Console";
    sandbox_mark: "SANDBOX · nenhum dinheiro real", "SANDBOX · no real money", "SANDBOX · pas d’argent réel";
    production_mark: "PRODUÇÃO · dinheiro real", "PRODUCTION · real money", "PRODUCTION · argent réel";
    skip: "Saltar para o conteúdo", "Skip to content", "Aller au contenu";
    language: "Idioma", "Language", "Langue";
    times_of: "Hora de Luanda (UTC+1)", "Luanda time (UTC+1)", "Heure de Luanda (UTC+1)";
    menu: "Menu", "Menu", "Menu";
    nav_home: "Início", "Home", "Accueil";
    nav_orders: "Encomendas", "Orders", "Commandes";
    nav_webhooks: "Webhooks", "Webhooks", "Webhooks";
    nav_exceptions: "Excepções", "Exceptions", "Exceptions";
    nav_developers: "Programadores", "Developers", "Développeurs";
    nav_requests: "Chamadas", "Requests", "Requêtes";
    nav_audit: "Auditoria", "Audit", "Audit";
    nav_people: "Utilizadores", "Users", "Utilisateurs";
    nav_account: "Conta", "Account", "Compte";
    sign_out: "Sair", "Sign out", "Se déconnecter";
    sign_in: "Entrar", "Sign in", "Se connecter";
    login: "Utilizador", "Login", "Identifiant";
    password: "Palavra-passe", "Password", "Mot de passe";
    password_again: "Repita a palavra-passe", "Password again", "Répétez le mot de passe";
    password_new: "Nova palavra-passe", "New password", "Nouveau mot de passe";
    password_present: "Palavra-passe actual", "Current password", "Mot de passe actuel";
    code_optional: "Código do telemóvel (se o activou)", "Code from your phone (if you switched it on)", "Code du téléphone (si activé)";
    code: "Código", "Code", "Code";
    sign_in_wrong: "Utilizador, palavra-passe ou código errados. Tente de novo.", "Wrong login, password or code. Try again.", "Identifiant, mot de passe ou code incorrect. Réessayez.";
    sign_in_throttled: "Demasiadas tentativas. Espere um minuto e tente de novo.", "Too many attempts. Wait a minute and try again.", "Trop de tentatives. Attendez une minute et réessayez.";
    welcome: "Bem-vindo", "Welcome", "Bienvenue";
    welcome_text: "Escolha uma palavra-passe para entrar.", "Choose a password to sign in.", "Choisissez un mot de passe pour entrer.";
    password_short: "Demasiado curta.", "Too short.", "Trop court.";
    password_long: "Demasiado longa: 200 caracteres, no máximo.", "Too long: 200 characters at most.", "Trop long : 200 caractères au plus.";
    password_differ: "As duas não são iguais.", "The two are not alike.", "Les deux ne sont pas identiques.";
    password_rule: "caracteres, pelo menos", "characters at least", "caractères au moins";
    not_found: "Não encontrado", "Not found", "Introuvable";
    not_found_text: "Não existe, ou não é seu. Verifique o endereço.", "There is no such thing, or it is not yours. Check the address.", "Cela n’existe pas, ou n’est pas à vous. Vérifiez l’adresse.";
    forbidden: "Sem permissão", "Not allowed", "Non autorisé";
    forbidden_text: "O seu papel não permite isto. Peça a um proprietário.", "Your role does not allow this. Ask an owner.", "Votre rôle ne le permet pas. Demandez à un propriétaire.";
    foreign_text: "O envio veio de uma página de outro site. Abra a consola e tente de novo.", "The request came from another site’s page. Open the console and try again.", "La demande vient d’une page d’un autre site. Ouvrez la console et réessayez.";
    bad_form: "Formulário inválido", "Invalid form", "Formulaire non valide";
    bad_form_text: "Falta um campo, ou um deles tem um valor inválido. Volte atrás e corrija.", "A field is missing, or has a value that is not valid. Go back and correct it.", "Un champ manque ou n’est pas valable. Revenez et corrigez.";
    not_done: "Nada foi feito", "Nothing was done", "Rien n’a été fait";
    rotating_already: "Já há uma troca em curso: o segredo anterior ainda é válido, e com mais uma deixava de o ser já. Ponha primeiro o novo em uso e depois revogue o anterior, ou troque com 0 horas; das duas formas, o anterior deixa logo de valer.", "A change is under way: the secret before this one still works, and with another change it would stop now. Put the new one in use first and then revoke the previous one, or change with 0 hours; either way the previous one stops at once.", "Un remplacement est en cours : le secret précédent est encore valable, et un de plus l'arrêterait aussitôt. Mettez d'abord le nouveau en service, puis révoquez le précédent, ou remplacez avec 0 heure ; des deux façons, le précédent cesse aussitôt d'être valable.";
    taken_already: "Já existe um utilizador com este nome.", "There is a user with this login already.", "Un utilisateur avec cet identifiant existe déjà.";
    person_disabled: "Este utilizador está desactivado: active-o primeiro.", "This user is disabled: enable them first.", "Cet utilisateur est désactivé : activez-le d’abord.";
    resolved_already: "Já estava resolvida. Veja quem decidiu o quê em «Todas».", "It was resolved already. “All” shows who decided what.", "Elle était déjà résolue. « Toutes » montre qui a décidé quoi.";
    not_acceptable: "Só se aceita dinheiro por que uma encomenda pendente espera.", "Only money that a pending order waits for can be accepted.", "Seul l’argent qu’une commande attend peut être accepté.";
    order_held: "A encomenda espera por este dinheiro: aceite-o ou devolva-o.", "The order waits for this money: accept it or refund it.", "La commande attend cet argent : acceptez-le ou remboursez-le.";
    too_many: "Demasiados ao mesmo tempo", "Too many at once", "Trop à la fois";
    too_many_text: "Outros ainda estão em curso. Espere que um acabe e tente de novo.", "Others are still under way. Wait until one has ended and try again.", "D’autres sont encore en cours. Attendez que l’un se termine et réessayez.";
    unavailable: "De momento não é possível", "Not possible at the moment", "Impossible pour le moment";
    unavailable_text: "Nada se perdeu. Tente de novo dentro de um momento.", "Nothing is lost. Try again in a moment.", "Rien n’est perdu. Réessayez dans un instant.";
    back_home: "Voltar ao início", "Back home", "Retour à l’accueil";
    request: "Chamada", "Request", "Requête";
    search: "Procurar", "Search", "Chercher";
    search_hint: "Qualquer identificador: encomenda, evento, referência, chamada", "Any id: order, event, reference, request", "Tout identifiant : commande, événement, référence, requête";
    nothing_found: "Nada encontrado com este identificador.", "Nothing found with this id.", "Rien trouvé avec cet identifiant.";
    period: "Período", "Period", "Période";
    last_24h: "24 horas", "24 hours", "24 heures";
    last_7d: "7 dias", "7 days", "7 jours";
    last_30d: "30 dias", "30 days", "30 jours";
    volume: "Volume pago", "Paid volume", "Volume payé";
    orders_made: "Encomendas criadas", "Orders created", "Commandes créées";
    success_rate: "Taxa de sucesso", "Success rate", "Taux de réussite";
    success_hint: "pagas entre as encerradas", "paid among those closed", "payées parmi les commandes closes";
    webhook_lag: "Atraso dos webhooks", "Webhook lag", "Attente des webhooks";
    webhook_lag_hint: "média até à primeira tentativa; pior", "mean until the first attempt; worst", "moyenne jusqu’à la première tentative ; pire";
    webhook_failures: "Webhooks falhados", "Webhook failures", "Échecs des webhooks";
    webhook_failures_hint: "tentativas sem resposta 2xx", "attempts without a 2xx", "tentatives sans réponse 2xx";
    attention: "Precisa da sua atenção", "Needs your attention", "À traiter";
    attention_none: "Nada. Está tudo em ordem.", "Nothing. All is well.", "Rien. Tout va bien.";
    attention_exceptions: "Excepções por resolver", "Exceptions to resolve", "Exceptions à résoudre";
    attention_unanswered: "Pagamentos de que a rede não diz nada", "Payments whose rail keeps silent", "Paiements dont le réseau ne dit rien";
    attention_exhausted: "Webhooks abandonados", "Abandoned webhooks", "Webhooks abandonnés";
    attention_waiting: "Webhooks à espera", "Webhooks waiting", "Webhooks en attente";
    attention_oldest: "o mais antigo desde", "the oldest since", "le plus ancien depuis";
    chart_orders: "Encomendas", "Orders", "Commandes";
    chart_webhooks: "Webhooks", "Webhooks", "Webhooks";
    chart_confirmed: "Pagas", "Paid", "Payées";
    chart_cancelled: "Canceladas", "Cancelled", "Annulées";
    chart_attempts: "Tentativas", "Attempts", "Tentatives";
    chart_failures: "Falhas", "Failures", "Échecs";
    as_table: "Como tabela", "As a table", "En tableau";
    when: "Quando", "When", "Quand";
    all: "Todos", "All", "Tous";
    all_of_them: "Todas", "All", "Toutes";
    application: "Aplicação", "Application", "Application";
    status: "Estado", "Status", "Statut";
    from: "De", "From", "Du";
    to: "Até", "To", "Au";
    filter: "Filtrar", "Filter", "Filtrer";
    export_csv: "Exportar CSV", "Export CSV", "Exporter en CSV";
    status_pending: "pendente", "pending", "en attente";
    status_confirmed: "paga", "paid", "payée";
    status_cancelled: "cancelada", "cancelled", "annulée";
    order: "Encomenda", "Order", "Commande";
    amount: "Montante", "Amount", "Montant";
    created: "Criação", "Created", "Création";
    expires: "Prazo", "Deadline", "Échéance";
    description: "Descrição", "Description", "Description";
    expected_amount: "Montante esperado", "Expected amount", "Montant attendu";
    told_of: "Aviso recebido", "What was told", "Avis reçu";
    payer: "Cliente", "Payer", "Payeur";
    older: "Anteriores", "Older", "Plus anciens";
    newest: "Mais recentes", "Newest", "Plus récents";
    none_so_far: "Nenhuma entre as mais recentes. Procure nas anteriores.", "None among the newest. Look among the older ones.", "Aucune parmi les plus récentes. Cherchez parmi les plus anciennes.";
    nothing_here: "Nada aqui.", "Nothing here.", "Rien ici.";
    cancel_order: "Cancelar encomenda", "Cancel order", "Annuler la commande";
    resolve_confirm: "Esta decisão é definitiva e pode mudar a encomenda. Continuar?", "This decision is final and may change the order. Go on?", "Cette décision est définitive et peut modifier la commande. Continuer ?";
    choose_resolution: "Escolha…", "Choose…", "Choisissez…";
    cancel_confirm: "Cancelar esta encomenda? Não se pode desfazer.", "Cancel this order? It cannot be undone.", "Annuler cette commande ? C’est définitif.";
    cancel_waits: "O cancelamento espera pelo pagamento em curso.", "The cancellation waits for the payment under way.", "L’annulation attend le paiement en cours.";
    simulate: "Simular", "Simulate", "Simuler";
    simulate_confirm: "Pagar", "Pay", "Payer";
    simulate_decline: "Recusar", "Decline", "Refuser";
    simulate_pending: "Emitir referência", "Issue a reference", "Émettre une référence";
    simulate_cancel: "Desistir", "Give up", "Abandonner";
    simulate_expire: "Deixar expirar", "Let it expire", "Laisser expirer";
    clock: "Relógio do sandbox", "Clock of the sandbox", "Horloge du sandbox";
    clock_move: "Avançar", "Advance", "Avancer";
    minutes: "minutos", "minutes", "minutes";
    attempts: "Tentativas", "Attempts", "Tentatives";
    method: "Método", "Method", "Moyen";
    instrument: "Meio", "Instrument", "Instrument";
    until: "Até", "Until", "Jusqu’à";
    story: "Histórico", "History", "Historique";
    story_created: "Encomenda criada", "Order created", "Commande créée";
    story_event: "Evento para o comerciante", "Event for the merchant", "Événement pour le marchand";
    story_delivery: "Entrega, tentativa", "Delivery, attempt", "Livraison, tentative";
    story_exception: "Dinheiro que não bate certo", "Money that does not fit", "Argent qui ne correspond pas";
    operator: "operador", "operator", "opérateur";
    action_settle: "Estado mudou", "Status changed", "Statut changé";
    action_attempt_start: "Tentativa de pagamento", "Attempt to pay", "Tentative de paiement";
    action_attempt_step: "Tentativa avançou", "Attempt moved on", "La tentative a avancé";
    action_request_cancel: "Cancelamento pedido", "Cancellation asked for", "Annulation demandée";
    action_exception_enter: "Excepção registada", "Exception entered", "Exception enregistrée";
    action_exception: "Excepção resolvida", "Exception resolved", "Exception résolue";
    action_simulate: "Simulado à mão", "Simulated by hand", "Simulé à la main";
    action_attempt_answer: "Resposta dada por um operador", "Answered by an operator", "Réponse d’un opérateur";
    action_export: "Encomendas exportadas", "Orders exported", "Commandes exportées";
    action_clock: "Relógio adiantado", "Clock moved", "Horloge avancée";
    action_reconcile: "Extracto comparado", "Statement compared", "Relevé comparé";
    action_replay: "Webhook enviado de novo", "Webhook sent again", "Webhook renvoyé";
    action_partner_create: "Parceiro criado", "Partner created", "Partenaire créé";
    action_partner_disable: "Parceiro desactivado", "Partner disabled", "Partenaire désactivé";
    action_partner_enable: "Parceiro activado", "Partner enabled", "Partenaire activé";
    action_partner_rotate: "Segredo do parceiro renovado", "Partner’s secret renewed", "Secret du partenaire renouvelé";
    action_partner_revoke: "Segredo anterior revogado", "Previous secret revoked", "Secret précédent révoqué";
    action_application_create: "Aplicação criada", "Application created", "Application créée";
    action_application_rotate: "Segredo de webhook renovado", "Webhook secret renewed", "Secret de webhook renouvelé";
    action_person_create: "Utilizador criado", "User created", "Utilisateur créé";
    action_person_invite: "Convite feito", "Invitation made", "Invitation faite";
    action_person_role: "Papel mudado", "Role changed", "Rôle changé";
    action_person_disable: "Utilizador desactivado", "User disabled", "Utilisateur désactivé";
    action_person_enable: "Utilizador activado", "User enabled", "Utilisateur activé";
    action_person_password: "Palavra-passe mudada", "Password changed", "Mot de passe changé";
    action_person_totp: "Códigos de uso único", "One-time codes", "Codes à usage unique";
    action_sign_in: "Entrou", "Signed in", "Connexion";
    action_sign_in_refused: "Entrada recusada", "Sign-in refused", "Connexion refusée";
    action_sign_out: "Saiu", "Signed out", "Déconnexion";
    action_master_key: "Chave-mestra mudada", "Master key changed", "Clé maîtresse changée";
    attempt_submitted: "enviada", "submitted", "envoyée";
    attempt_awaiting_payer: "à espera do cliente", "awaiting the payer", "attend le payeur";
    attempt_unknown: "sem resposta", "unknown", "sans réponse";
    attempt_issued: "emitida", "issued", "émise";
    attempt_held: "retida", "held", "retenue";
    attempt_accepted: "paga", "accepted", "acceptée";
    attempt_rejected: "recusada", "rejected", "refusée";
    attempt_timed_out: "prazo esgotado", "timed out", "hors délai";
    attempt_revoked: "retirada", "revoked", "retirée";
    attempt_expired: "expirada", "expired", "expirée";
    destinations: "Destinos", "Destinations", "Destinations";
    destination: "Destino", "Destination", "Destination";
    waiting: "À espera", "Waiting", "En attente";
    oldest: "Mais antigo", "Oldest", "Plus ancien";
    next_attempt: "Prevista para", "Due", "Prévue pour";
    taken: "Aceites", "Accepted", "Acceptés";
    latency: "Latência", "Latency", "Latence";
    healthy: "saudável", "healthy", "sain";
    unhealthy: "a falhar", "failing", "en échec";
    event: "Evento", "Event", "Événement";
    state_failing: "A falhar", "Failing", "En échec";
    state_queued: "Na fila", "Queued", "En file";
    state_delivered: "Entregue", "Delivered", "Livré";
    state_superseded: "Substituído", "Superseded", "Remplacé";
    state_exhausted: "Abandonado", "Abandoned", "Abandonné";
    recover: "Enviar de novo tudo o que falhou", "Send again all that failed", "Renvoyer tout ce qui a échoué";
    recover_since: "Das últimas horas (quantas)", "From the last hours (how many)", "Des dernières heures (combien)";
    resend: "Enviar de novo", "Send again", "Renvoyer";
    request_sent: "O que é enviado", "What is sent", "Ce qui est envoyé";
    headers_now: "Cabeçalhos, assinados agora", "Headers, signed now", "En-têtes, signés maintenant";
    body: "Corpo", "Body", "Corps";
    copy_curl: "Copiar como curl", "Copy as curl", "Copier en curl";
    copy: "Copiar", "Copy", "Copier";
    copied: "Copiado", "Copied", "Copié";
    answer: "Resposta", "Answer", "Réponse";
    exceptions_text: "Dinheiro que chegou tarde, com outro montante, a mais, ou sem encomenda. Nada se perde: um operador decide.", "Money that came late, with another amount, twice, or for no order. None is lost: an operator decides.", "Argent arrivé en retard, d’un autre montant, en trop ou sans commande. Rien ne se perd : un opérateur décide.";
    open_only: "Por resolver", "Open", "À résoudre";
    kind_late: "Tarde", "Late", "En retard";
    kind_mismatch: "Outro montante", "Another amount", "Autre montant";
    kind_reused: "Id repetido", "Id used before", "Id déjà utilisé";
    kind_excess: "A mais", "Excess", "En trop";
    kind_unmatched: "Sem encomenda", "Unmatched", "Sans commande";
    kind_reversal: "Estorno", "Reversal", "Contre-passation";
    meaning_late: "A encomenda já estava cancelada quando o dinheiro chegou. Normalmente devolve-se.", "The order was cancelled before the money came. Usually it is refunded.", "La commande était déjà annulée quand l’argent est arrivé. En général on rembourse.";
    meaning_mismatch: "O cliente pagou outro montante. A encomenda espera: aceite-a como paga, ou devolva o dinheiro.", "The payer paid another amount. The order waits: accept it as paid, or refund the money.", "Le payeur a payé un autre montant. La commande attend : acceptez-la comme payée, ou remboursez.";
    meaning_reused: "A rede usou para este pagamento um id que já era de outro. Confirme com ela que o dinheiro chegou; a encomenda espera.", "The rail used an id for this payment that belonged to another one. Ask it whether the money came; the order waits.", "Le réseau a utilisé pour ce paiement un id déjà pris. Vérifiez auprès de lui que l’argent est arrivé ; la commande attend.";
    meaning_settled: "A encomenda já não espera por este dinheiro: devolva-o, ou diga que nada há a fazer.", "The order no longer waits for this money: refund it, or say that nothing is to be done.", "La commande n’attend plus cet argent : remboursez-le, ou dites qu’il n’y a rien à faire.";
    meaning_excess: "A encomenda já estava paga: o dinheiro entrou duas vezes. Normalmente devolve-se.", "The order was paid before: the money came in twice. Usually it is refunded.", "La commande était déjà payée : l’argent est arrivé deux fois. En général on rembourse.";
    meaning_unmatched: "Nenhuma encomenda tem esta referência. Pergunte à rede quem pagou e devolva.", "No order has this reference. Ask the rail who paid, and refund.", "Aucune commande n’a cette référence. Demandez au réseau qui a payé, et remboursez.";
    meaning_reversal: "A rede retirou o dinheiro. A encomenda fica como está: fale com o comerciante.", "The rail took the money back. The order stays as it is: talk to the merchant.", "Le réseau a repris l’argent. La commande reste comme elle est : parlez au marchand.";
    rail: "Rede", "Rail", "Réseau";
    resolve: "Resolver", "Resolve", "Résoudre";
    resolve_accept: "Aceitar como paga", "Accept as paid", "Accepter comme payée";
    resolve_refund: "Dinheiro já devolvido", "Money already refunded", "Argent déjà remboursé";
    resolve_dismiss: "Nada a fazer", "Nothing to do", "Rien à faire";
    resolved_accepted: "Aceite como paga", "Accepted as paid", "Acceptée comme payée";
    resolved_refunded: "Dinheiro devolvido", "Money refunded", "Argent remboursé";
    resolved_dismissed: "Nada a fazer", "Nothing to do", "Rien à faire";
    reason: "Motivo", "Reason", "Motif";
    resolved: "Resolvido", "Resolved", "Résolu";
    keys: "Chaves", "Keys", "Clés";
    client_id: "SVC_CLIENT_ID", "SVC_CLIENT_ID", "SVC_CLIENT_ID";
    webhook_secret: "Segredo dos webhooks", "Webhook secret", "Secret des webhooks";
    publishable_key: "Chave publicável", "Publishable key", "Clé publiable";
    last_used: "Último uso", "Last used", "Dernier usage";
    never: "nunca", "never", "jamais";
    webhook_hosts: "Webhooks só para", "Webhooks only to", "Webhooks seulement vers";
    previous_until: "O anterior vale até", "The previous one is valid until", "Le précédent vaut jusqu’au";
    rotate_client: "Trocar o SVC_CLIENT_SECRET", "Rotate SVC_CLIENT_SECRET", "Renouveler SVC_CLIENT_SECRET";
    rotate_webhook: "Trocar o segredo dos webhooks", "Rotate the webhook secret", "Renouveler le secret des webhooks";
    disable_confirm: "Desactivar este utilizador? As suas sessões terminam já.", "Disable this user? Their sessions end now.", "Désactiver cet utilisateur ? Ses sessions se terminent immédiatement.";
    rotate_confirm: "Emitir um segredo novo?", "Issue a new secret?", "Émettre un nouveau secret ?";
    overlap_hours: "O anterior vale ainda (horas)", "The previous one stays valid for (hours)", "Le précédent reste valable (heures)";
    revoke: "Revogar o anterior agora", "Revoke the previous one now", "Révoquer le précédent maintenant";
    revealed: "Guarde-o agora: não volta a ser mostrado.", "Keep it now: it is not shown again.", "Gardez-le maintenant : il ne sera plus montré.";
    first_steps: "Primeiros passos", "First steps", "Premiers pas";
    step_key: "Chave emitida", "Key issued", "Clé émise";
    step_order: "Primeira encomenda criada", "First order created", "Première commande créée";
    step_button: "Botão aberto por um cliente", "Button opened by a payer", "Bouton ouvert par un payeur";
    step_webhook: "Webhook recebido e aceite", "Webhook received and accepted", "Webhook reçu et accepté";
    done_mark: "feito", "done", "fait";
    todo_mark: "por fazer", "to do", "à faire";
    signature_helper: "Verificar uma assinatura", "Check a signature", "Vérifier une signature";
    signature_text: "Tudo se passa no seu navegador: o segredo não sai daqui.", "All of it happens in your browser: the secret does not leave it.", "Tout se passe dans votre navigateur : le secret n’en sort pas.";
    signature_body: "Corpo, exactamente como chegou", "Body, exactly as it came", "Corps, exactement tel que reçu";
    signature_given: "Assinatura recebida (x-svc-content-token)", "Signature received (x-svc-content-token)", "Signature reçue (x-svc-content-token)";
    signature_check: "Verificar", "Check", "Vérifier";
    signature_right: "Está certa.", "It is right.", "Elle est juste.";
    signature_wrong: "Não corresponde a esta mensagem com este segredo.", "It does not match this message with this secret.", "Elle ne correspond pas à ce message avec ce secret.";
    signature_client: "Este é o segredo do cliente; os webhooks são assinados com o SVC_WEBHOOK_SECRET (whsec_…).", "This is the client secret; webhooks are signed with SVC_WEBHOOK_SECRET (whsec_…).", "C’est le secret du client ; les webhooks sont signés avec SVC_WEBHOOK_SECRET (whsec_…).";
    signature_prefix: "Seria a certa com o segredo inteiro, que começa por whsec_.", "It would be right with the whole secret, which begins with whsec_.", "Elle serait juste avec le secret entier, qui commence par whsec_.";
    signature_upper: "Certa, mas em maiúsculas: só minúsculas valem.", "Right, but in upper case: only lower case counts.", "Juste, mais en majuscules : seules les minuscules valent.";
    signature_newline: "Seria a certa com uma quebra de linha no fim do corpo (ou sem ela).", "It would be right with a newline at the end of the body (or without it).", "Elle serait juste avec un saut de ligne à la fin du corps (ou sans).";
    signature_reencoded: "É a do JSON escrito de novo: assine os bytes como chegaram.", "It is that of the JSON written anew: sign the bytes as they came.", "C’est celle du JSON réécrit : signez les octets tels que reçus.";
    signature_expected: "Assinatura esperada", "Expected signature", "Signature attendue";
    builder: "Fazer o botão", "Build the button", "Construire le bouton";
    builder_text: "Escolha e copie. É a parte da página; a do seu servidor é /api/svc/create-order (docs/integrate.md).", "Choose and copy. It is the page's part; that of your server is /api/svc/create-order (docs/integrate.md).", "Choisissez et copiez. C’est la part de la page ; celle de votre serveur est /api/svc/create-order (docs/integrate.md).";
    builder_shape: "Forma", "Shape", "Forme";
    builder_theme: "Tema", "Theme", "Thème";
    builder_width: "Largura", "Width", "Largeur";
    builder_life: "Validade da referência (minutos)", "Reference validity (minutes)", "Validité de la référence (minutes)";
    builder_methods: "Métodos", "Methods", "Moyens";
    requests_text: "As chamadas do seu programa, sem nada secreto ou pessoal. Guardadas 30 dias.", "The calls of your program, without anything secret or personal. Kept for 30 days.", "Les requêtes de votre programme, sans rien de secret ni de personnel. Gardées 30 jours.";
    refused_only: "Só recusadas", "Refused only", "Refusées seulement";
    call: "Método e caminho", "Method and path", "Méthode et chemin";
    took: "Duração", "Duration", "Durée";
    audit_text: "Quem fez o quê. As linhas são seladas em cadeia; «svc audit verify» encontra qualquer alteração.", "Who did what. Rows are sealed in a chain; “svc audit verify” finds any change.", "Qui a fait quoi. Les lignes sont scellées en chaîne ; « svc audit verify » trouve toute altération.";
    audit_head: "Último selo (guarde-o noutro lugar)", "Last seal (keep it elsewhere)", "Dernier sceau (gardez-le ailleurs)";
    sealed: "selada", "sealed", "scellée";
    unsealed: "por selar", "not sealed yet", "pas encore scellée";
    who: "Quem", "Who", "Qui";
    what: "O quê", "What", "Quoi";
    subject: "Sobre", "Subject", "Sujet";
    change: "Mudança", "Change", "Changement";
    invite: "Convidar", "Invite", "Inviter";
    invite_link: "Envie este endereço: serve uma vez, durante 72 horas.", "Send this address: it works once, for 72 hours.", "Envoyez cette adresse : elle sert une fois, pendant 72 heures.";
    invite_new: "Novo convite", "New invitation", "Nouvelle invitation";
    role: "Papel", "Role", "Rôle";
    role_owner: "proprietário", "owner", "propriétaire";
    role_developer: "programador", "developer", "développeur";
    role_support: "apoio", "support", "assistance";
    role_reader: "leitura", "read-only", "lecture";
    save: "Guardar", "Save", "Enregistrer";
    disable: "Desactivar", "Disable", "Désactiver";
    enable: "Activar", "Enable", "Activer";
    disabled: "desactivado", "disabled", "désactivé";
    invited: "convidado", "invited", "invité";
    active: "activo", "active", "actif";
    yourself: "é a sua conta", "your account", "votre compte";
    totp: "Código do telemóvel", "Code from a phone", "Code du téléphone";
    totp_off: "Desligar códigos", "Switch codes off", "Désactiver les codes";
    totp_on: "Ligar códigos", "Switch codes on", "Activer les codes";
    totp_text: "Leia o código QR com uma aplicação de autenticação e escreva o que ela mostra.", "Read the QR code with an authenticator app and type what it shows.", "Lisez le code QR avec une application d’authentification et tapez ce qu’elle montre.";
    totp_is_on: "Os códigos estão ligados.", "Codes are switched on.", "Les codes sont activés.";
    code_wrong: "O código não está certo. Veja a hora do telemóvel.", "The code is not right. Check your phone’s clock.", "Le code n’est pas juste. Vérifiez l’heure du téléphone.";
    change_password: "Mudar a palavra-passe", "Change the password", "Changer le mot de passe";
    done_cancelled: "Encomenda cancelada.", "Order cancelled.", "Commande annulée.";
    done_settled: "A encomenda já estava encerrada.", "The order was already closed.", "La commande était déjà close.";
    done_cancel_waits: "O cancelamento espera pelo pagamento em curso.", "The cancellation waits for the payment under way.", "L’annulation attend le paiement en cours.";
    done_simulated: "Feito.", "Done.", "Fait.";
    done_resent: "Na fila outra vez; sai já.", "Queued again; it leaves now.", "De nouveau en file ; il part maintenant.";
    done_not_resent: "Não foi enviado: um evento mais novo da mesma encomenda tomou o seu lugar.", "Not sent: a newer event of the same order took its place.", "Pas envoyé : un événement plus récent de la même commande a pris sa place.";
    done_recovering: "Está em curso: são muitos, e continua mesmo que saia desta página.", "Under way: there are many, and it goes on even if you leave this page.", "En cours : il y en a beaucoup, et cela continue même si vous quittez cette page.";
    done_recovery_waits: "Já está em curso outro envio destes, e por isso nada foi enviado de novo. Tente dentro de um minuto.", "Another sending of this kind is under way, so nothing was sent again. Try again in a minute.", "Un autre renvoi de ce genre est en cours : rien n'a été renvoyé. Réessayez dans une minute.";
    done_recovered: "Tudo o que falhou sai de novo.", "All that failed goes out again.", "Tout ce qui a échoué repart.";
    done_resolved: "Resolvido.", "Resolved.", "Résolu.";
    done_revoked: "O segredo anterior já não vale.", "The previous secret no longer works.", "Le secret précédent ne vaut plus.";
    done_changed: "Mudado.", "Changed.", "Changé.";
    done_clock: "O relógio avançou, e tudo o que vencia aconteceu.", "The clock moved, and all that fell due has happened.", "L’horloge a avancé, et tout ce qui arrivait à échéance s’est produit.";
    done_clock_moving: "O relógio ainda avança.", "The clock is still moving.", "L’horloge avance encore.";
}

impl Texts {
    pub(super) fn status(&self, status: Status) -> &'static str {
        match status {
            Status::Pending => self.status_pending,
            Status::Confirmed => self.status_confirmed,
            Status::Cancelled => self.status_cancelled,
        }
    }

    pub(super) fn role(&self, role: Role) -> &'static str {
        match role {
            Role::Owner => self.role_owner,
            Role::Developer => self.role_developer,
            Role::Support => self.role_support,
            Role::Reader => self.role_reader,
        }
    }

    /// Also by how often it failed since it was queued.
    pub(super) fn event_state(&self, state: EventState, failures: u32) -> &'static str {
        match state {
            EventState::Queued if failures > 0 => self.state_failing,
            EventState::Queued => self.state_queued,
            EventState::Delivered => self.state_delivered,
            EventState::Superseded => self.state_superseded,
            EventState::Exhausted => self.state_exhausted,
        }
    }

    /// As it is stored: a word, and why.
    pub(super) fn resolution(&self, stored: &str) -> String {
        let (word, why) = stored.split_once(": ").unwrap_or(("", stored));
        let word = match word {
            "accepted" => self.resolved_accepted,
            "refunded" => self.resolved_refunded,
            "dismissed" => self.resolved_dismissed,
            _ => return stored.to_owned(),
        };
        format!("{word}: {why}")
    }

    pub(super) fn exception_kind(&self, kind: ExceptionKind) -> &'static str {
        match kind {
            ExceptionKind::Late => self.kind_late,
            ExceptionKind::Mismatch => self.kind_mismatch,
            ExceptionKind::Reused => self.kind_reused,
            ExceptionKind::Excess => self.kind_excess,
            ExceptionKind::Unmatched => self.kind_unmatched,
            ExceptionKind::Reversal => self.kind_reversal,
        }
    }

    /// What happened, and what is usually done about it.
    pub(super) fn exception_meaning(&self, kind: ExceptionKind, held: bool) -> &'static str {
        match kind {
            _ if kind.holds_order() && !held => self.meaning_settled,
            ExceptionKind::Late => self.meaning_late,
            ExceptionKind::Mismatch => self.meaning_mismatch,
            ExceptionKind::Reused => self.meaning_reused,
            ExceptionKind::Excess => self.meaning_excess,
            ExceptionKind::Unmatched => self.meaning_unmatched,
            ExceptionKind::Reversal => self.meaning_reversal,
        }
    }

    pub(super) fn attempt_state(&self, state: AttemptState) -> &'static str {
        match state {
            AttemptState::Submitted => self.attempt_submitted,
            AttemptState::AwaitingPayer => self.attempt_awaiting_payer,
            AttemptState::Unknown => self.attempt_unknown,
            AttemptState::Issued => self.attempt_issued,
            AttemptState::Held => self.attempt_held,
            AttemptState::Accepted => self.attempt_accepted,
            AttemptState::Rejected => self.attempt_rejected,
            AttemptState::TimedOut => self.attempt_timed_out,
            AttemptState::Revoked => self.attempt_revoked,
            AttemptState::Expired => self.attempt_expired,
        }
    }

    /// What the history calls a state, in words; anything else stands for itself.
    pub(super) fn state_word<'a>(&self, word: &'a str) -> &'a str {
        AttemptState::from_text(word).map_or(word, |state| self.attempt_state(state))
    }

    /// An action of the history in words; one without words stands for itself.
    pub(super) fn action<'a>(&self, action: &'a str) -> &'a str {
        match action {
            "order.settle" => self.action_settle,
            "attempt.start" => self.action_attempt_start,
            "attempt.step" => self.action_attempt_step,
            "order.request_cancel" => self.action_request_cancel,
            "exception.enter" => self.action_exception_enter,
            "exception.resolve" => self.action_exception,
            "order.simulate" => self.action_simulate,
            "attempt.answer" => self.action_attempt_answer,
            "orders.export" => self.action_export,
            "clock.advance" => self.action_clock,
            "rail.reconcile" => self.action_reconcile,
            "webhook.replay" => self.action_replay,
            "partner.create" => self.action_partner_create,
            "partner.disable" => self.action_partner_disable,
            "partner.enable" => self.action_partner_enable,
            "partner.rotate_secret" => self.action_partner_rotate,
            "partner.revoke_previous_secret" => self.action_partner_revoke,
            "application.create" => self.action_application_create,
            "application.rotate_webhook_secret" => self.action_application_rotate,
            "person.create" => self.action_person_create,
            "person.invite" => self.action_person_invite,
            "person.set_role" => self.action_person_role,
            "person.disable" => self.action_person_disable,
            "person.enable" => self.action_person_enable,
            "person.set_password" => self.action_person_password,
            "person.set_totp" => self.action_person_totp,
            "person.sign_in" => self.action_sign_in,
            "person.sign_in_refused" => self.action_sign_in_refused,
            "person.sign_out" => self.action_sign_out,
            "master_key.change" => self.action_master_key,
            other => other,
        }
    }

    /// What a page says it did, by the word in its address; anything else says nothing.
    pub(super) fn done(&self, what: &str) -> &'static str {
        match what {
            "cancelled" => self.done_cancelled,
            "settled" => self.done_settled,
            "cancel_waits" => self.done_cancel_waits,
            "simulated" => self.done_simulated,
            "resent" => self.done_resent,
            "not_resent" => self.done_not_resent,
            "recovered" => self.done_recovered,
            "recovering" => self.done_recovering,
            "recovery_waits" => self.done_recovery_waits,
            "resolved" => self.done_resolved,
            "revoked" => self.done_revoked,
            "changed" => self.done_changed,
            "clock" => self.done_clock,
            "clock_moving" => self.done_clock_moving,
            _ => "",
        }
    }
}
